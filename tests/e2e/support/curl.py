"""HTTP by the real curl: status, header fields and body."""

import json
import shutil
import subprocess
from dataclasses import dataclass, field

BINARY = shutil.which("curl")


@dataclass
class Answer:
    status: int
    body: str
    fields: dict = field(default_factory=dict)  # name in lower case → list of values

    def one(self, name):
        """The value of a field that must be there once; None when it is absent."""
        values = self.fields.get(name.lower(), [])
        assert len(values) <= 1, f"{name} is given {len(values)} times: {values}"
        return values[0] if values else None

    @property
    def json(self):
        return json.loads(self.body)


def curl(url, *arguments, data=None):
    """`curl ARGUMENTS URL`; `data` (text, bytes, or what becomes JSON) is sent as a POST body."""
    command = [BINARY, "--silent", "--show-error", "--max-time", "30", "--output", "-"]
    if "--head" not in arguments:  # then the head is the output
        command += ["--dump-header", "-"]
    if data is not None:
        if not isinstance(data, (str, bytes)):
            data = json.dumps(data)
        command += ["--data-binary", "@-"]
    data = data.encode() if isinstance(data, str) else data
    run = subprocess.run([*command, *arguments, url], input=data, capture_output=True, timeout=60, check=False)
    if run.returncode != 0:
        raise RuntimeError(f"curl {url}: {run.stderr.decode().strip()} (exit {run.returncode})")
    return parse(run.stdout)


def parse(raw):
    """An answer from its bytes; interim answers (100 Continue) are passed over."""
    while True:
        head, _, rest = raw.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        status = int(lines[0].split(" ")[1])
        if status >= 200:
            break
        raw = rest
    fields = {}
    for line in lines[1:]:
        name, _, value = line.partition(":")
        fields.setdefault(name.strip().lower(), []).append(value.strip())
    return Answer(status, rest.decode("utf-8"), fields)
