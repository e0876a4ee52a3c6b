"""What is known of tools and programs by their names: which class of work a call of them is."""

from __future__ import annotations


def _table(**classes: str) -> dict[str, str]:
    return {name: cls for cls, names in classes.items() for name in names.split()}


# Tools of harnesses, in lower case. "shell": its command says; "editor": its first word does.
TOOLS = _table(
    shell="bash shell exec_command terminal execute_bash run_command container.exec local_shell shell_command "
    "write_stdin terminalaction executebashaction cmdrunaction run_terminal_cmd execute_command",
    editor="str_replace_editor file_editor fileeditoraction str_replace_based_edit_tool",
    read="read view read_file notebookread view_image list_dir ls bashoutput open_file get_file",
    search="grep glob search find_file search_dir search_file codebase_search grep_search file_search list_files",
    edit="edit write multiedit notebookedit apply_patch create write_file edit_file insert search_replace",
    py="python ipython execute_ipython_cell run_ipython code_interpreter execute_code execute_python",
    db="sql sqlite execute_sql query_database run_query",
    human="askuserquestion exitplanmode ask_user request_user_input",
    llm="task agent delegate spawn_agent wait_agent send_input",
    remote="webfetch websearch web_search fetch browse browser web_fetch",
)
# Words in the name of any other tool, for servers of the Model Context Protocol.
WORDS = _table(
    db="sqlite postgres postgresql mysql mongodb duckdb redis sql database",
    remote="browser playwright puppeteer github gitlab slack jira notion linear sentry tavily exa brave firecrawl web "
    "http",
    search="grep search find glob",
    read="read view list get",
    edit="write edit create patch",
)
PROGRAMS = _table(
    test="pytest py.test tox nox nosetests jest vitest mocha ctest rspec phpunit runtests.py runtests coverage",
    install="pip pip3 pipx uv poetry pipenv conda mamba micromamba apt apt-get apk dnf yum brew gem bundle virtualenv "
    "npm yarn pnpm rustup",
    build="make gmake cmake ninja gcc g++ cc c++ clang clang++ ld rustc javac tsc meson bazel mvn gradle gradlew mvnw "
    "cargo go dotnet scons cython",
    py="ipython node ruby perl php deno bun lua Rscript java",
    db="sqlite3 psql mysql mongosh mongo redis-cli duckdb",
    sandbox="docker podman bwrap runc runsc unshare chroot systemd-run nsenter firejail buildah crun lxc",
    net="curl wget http nc ncat ab wrk hey",
    remote="ssh scp sftp gh kubectl aws gcloud az terraform helm ping dig nslookup",
    git="git svn hg",
    search="grep egrep fgrep rg ag ack find fd locate find_file search_dir search_file",
    edit="patch tee cp mv rm mkdir touch chmod chown ln truncate rmdir install apply_patch edit create insert unzip "
    "tar",
    read="cat head tail less more nl wc ls stat file pwd diff cmp awk sed jq du df tree cut sort uniq which printenv "
    "strings hexdump xxd od md5sum sha256sum ps id whoami uname date open goto scroll_up scroll_down view",
)
# Programs whose work their first argument names; anything else is what PROGRAMS says.
ARGUMENTS = {
    "npm": _table(test="test t run-test", build="build run", install="install ci i add"),
    "yarn": _table(test="test", build="build run", install="install add"),
    "pnpm": _table(test="test", build="build run", install="install add i"),
    "cargo": _table(test="test bench", install="install add fetch", build="build check clippy run"),
    "go": _table(test="test", install="get mod install", build="build vet run generate"),
    "make": _table(test="test check tests", install="install"),
    "mvn": _table(test="test verify"), "gradle": _table(test="test check"), "gradlew": _table(test="test check"),
    "dotnet": _table(test="test", install="restore"), "uv": _table(install="pip sync add venv"),
    "git": _table(remote="clone fetch pull push ls-remote"),
    "svn": _table(remote="checkout update commit"), "coverage": _table(read="report html xml"),
}  # fmt: skip
MODULES = _table(
    test="pytest unittest nose nose2 tox nox doctest django coverage",
    install="pip venv ensurepip virtualenv pipx",
    build="build compileall cython",
    net="http.server",
)
# What only carries another command; the number is how many words of its own it takes after its options.
CARRIERS = {"sudo": 0, "env": 0, "time": 0, "nice": 0, "nohup": 0, "stdbuf": 0, "xargs": 0, "command": 0, "exec": 0,
            "timeout": 1, "npx": 0, "ionice": 0, "setsid": 0, "doas": 0, "then": 0, "do": 0, "if": 0, "while": 0,
            "else": 0, "!": 0, "{": 0, "builtin": 0}  # fmt: skip
# Options whose value is the next word, of these and of RUNNERS; ``--option=value`` is one word.
VALUED = {
    "sudo": "-u -g -h -p -C -D -R -T -U -r -t --user --group --host --prompt --close-from --chdir --chroot "
    "--command-timeout --other-user --role --type",
    "doas": "-u -C",
    "env": "-u -C -S --unset --chdir --split-string",
    "time": "-f -o --format --output",
    "nice": "-n --adjustment",
    "ionice": "-c -n -p -P -u --class --classdata --pid --pgid --uid",
    "stdbuf": "-i -o -e --input --output --error",
    "timeout": "-k -s --kill-after --signal",
    "xargs": "-a -d -E -I -L -n -P -s --arg-file --delimiter --max-lines --max-args --max-procs --max-chars "
    "--process-slot-var",
    "exec": "-a",
    "npx": "-p -w --package --workspace",
    "uv": "-p -w --python --with --with-editable --with-requirements --extra --group --only-group --no-group --package "
    "--project --directory --env-file --index --default-index --cache-dir --config-file",
    "poetry": "-C -P --directory --project",
    "pdm": "-p --project",
    "hatch": "-e -p --env --project",
    "conda": "-n -p --name --prefix --cwd",
    "mamba": "-n -p --name --prefix --cwd",
}
RUNNERS = ("uv", "poetry", "pipenv", "pdm", "hatch", "conda", "mamba", "rye")  # `uv run COMMAND`
SHELLS = ("bash", "sh", "zsh", "dash", "ksh", "ash")
# The work of a compound command is that of its first part in this order.
ORDER = ("test", "build", "install", "sandbox", "py", "db", "remote", "net", "git", "search", "edit", "read", "other")
