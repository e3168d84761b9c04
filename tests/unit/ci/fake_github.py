"""The few paths of GitHub's REST interface that ci/comment.py and ci/alerts.py ask, with stores of comments and issues."""

import io
import json
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

REPOSITORY = "some-one/training"
HEAD = "a" * 40
BOT = "github-actions[bot]"


def packed(**files):
    """A zip; names have _ for a dot."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name.replace("_", "."), text)
    return buffer.getvalue()


class GitHub:
    """One repository, one run with an artifact, pull request 7."""

    def __init__(self):
        self.comments = []
        self.issues = []
        self.artifact = b""
        self.artifacts = [{"id": 5, "name": "pipeprof-gate", "expired": False}]
        self.pull = {"state": "open", "base": {"repo": {"full_name": REPOSITORY}}, "head": {"sha": HEAD}}
        self.files = []
        self.refuse = set()  # methods that are answered with 403
        self.requests = []  # (method, path, Authorization)
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self.thread.start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server.server_port}"

    def say(self, login, body):
        self.comments.append({"id": 100 + len(self.comments), "user": {"login": login}, "body": body})

    def written(self):
        return [(method, path) for method, path, _ in self.requests if method != "GET"]

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    def get(self, path, query):
        """(status, answer) below the repository."""
        if path == "actions/runs/11/artifacts":
            return 200, {"artifacts": self.artifacts}
        if path == "actions/artifacts/5/zip":
            return 302, f"{self.url}/storage/blob"
        if path == "pulls/7":
            return 200, self.pull
        if path in ("issues/7/comments", "pulls/7/files"):
            start = 100 * (int(query["page"][0]) - 1)
            return 200, (self.files if path == "pulls/7/files" else self.comments)[start : start + 100]
        if path == "issues":
            start = 100 * (int(query["page"][0]) - 1)
            labelled = [one for one in self.issues if query["labels"][0] in one["labels"]]
            return 200, labelled[start : start + 100]
        return 404, {"message": "Not Found"}

    def write(self, method, path, body):
        if method == "POST" and path == "issues/7/comments":
            self.say(BOT, body["body"])
            return 201, {}
        if method == "POST" and path == "issues":
            of = {"number": 1 + len(self.issues), "state": "open", "user": {"login": BOT}}
            self.issues.append(of | body)
            return 201, {}
        issues = [one for one in self.issues if path == f"issues/{one['number']}"]
        if method == "PATCH" and issues:
            issues[0].update(body)
            return 200, {}
        found = [one for one in self.comments if path == f"issues/comments/{one['id']}"]
        if method == "PATCH" and found:
            found[0]["body"] = body["body"]
            return 200, {}
        return 404, {"message": "Not Found"}

    def _handler(self):
        github = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *words):
                pass

            def do_GET(self):
                self._handle("GET", None)

            def do_POST(self):
                self._handle("POST", self._body())

            def do_PATCH(self):
                self._handle("PATCH", self._body())

            def _body(self):
                return json.loads(self.rfile.read(int(self.headers["Content-Length"])))

            def _handle(self, method, body):
                parts = urlsplit(self.path)
                github.requests.append((method, parts.path, self.headers.get("Authorization")))
                if parts.path == "/storage/blob":
                    self._answer(200, github.artifact)
                    return
                if method in github.refuse:
                    self._answer(403, b"{}")
                    return
                path = parts.path.removeprefix(f"/repos/{REPOSITORY}/")
                query = parse_qs(parts.query)
                status, answer = github.get(path, query) if body is None else github.write(method, path, body)
                self._answer(status, b"" if status == 302 else json.dumps(answer).encode(), answer)

            def _answer(self, status, data, place=None):
                self.send_response(status)
                if status == 302:
                    self.send_header("Location", place)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

        return Handler
