"""The figures of the vendor report: each a function from the report's document to a drawing with its table."""
