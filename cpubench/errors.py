"""The one exception that a person is meant to read."""


class UsageError(Exception):
    """Wrong usage or input: one line that says what, where and what to do; the command line exits with 2.

    ``code`` is a stable word for programs, ``where`` the file, option or place that is wrong.
    """

    def __init__(self, code: str, text: str, where: str = "") -> None:
        super().__init__(f"{where}: {text}" if where else text)
        self.code, self.text, self.where = code, text, where
