"""A git repository whose commits depend on nothing but their content."""

import os
import subprocess

FIXED = {
    "GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@example.org", "GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z",
    "GIT_COMMITTER_NAME": "A", "GIT_COMMITTER_EMAIL": "a@example.org", "GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z",
    "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1",
}  # fmt: skip


class GitRepository:
    """A new repository in `root`, on branch main."""

    def __init__(self, root):
        self.root = root
        root.mkdir(parents=True, exist_ok=True)
        self.git("init", "--quiet", "-b", "main")

    def git(self, *words):
        env = os.environ | FIXED
        done = subprocess.run(
            ["git", "-C", str(self.root), *words], check=True, capture_output=True, text=True, env=env
        )
        return done.stdout.strip()

    def write(self, files):
        """Text by path; None removes the file."""
        for name, text in files.items():
            path = self.root / name
            if text is None:
                path.unlink()
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def commit(self, files=None, message="a change"):
        """The full hash of a commit with these files, and with whatever else lies there."""
        self.write(files or {})
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")
