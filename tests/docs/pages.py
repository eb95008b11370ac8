"""Runs a page: its files are written, its commands run one after the other in one shell, its outputs compared."""
import os
import pathlib
import re
import signal
import socket
import subprocess

FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"[Ww]rite (?:it|this) to `([^`]+)`")
# Those that the page names give way to free ones.
PORTS = ("8080", "8081", "8082", "6070", "6379")


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [str(one.getsockname()[1]) for one in sockets]
    for one in sockets:
        one.close()
    return ports


def run_page(page, program, folder, seconds=120):
    """What differs from the page, in a sentence; None: nothing."""
    text = page.read_text()
    ports = dict(zip(PORTS, free_ports(len(PORTS))))
    there = re.compile(r"\b(" + "|".join(PORTS) + r")\b")
    script = ["set -m", f"export PATH={program.parent}:$PATH"]
    expected = []
    for block in FENCE.finditer(text):
        kind, body = block.groups()
        if kind == "yaml":
            named = FILE.findall(text[:block.start()])
            script.append(f"cat >{named[-1]} <<'END_OF_FILE'\n{body}END_OF_FILE")
        elif kind == "sh":
            expected.append([body, ""])
            # What the shell says of its jobs is not the page's.
            script.append(f"{{\n{there.sub(lambda port: ports[port[0]], body)}}} 2>>errors\necho '=== end of {len(expected)}'")
        elif kind == "text":
            expected[-1][1] = body
    environment = {**os.environ, "SLUICE_LISTEN_HTTP": "127.0.0.1:" + ports["8080"], "SLUICE_LISTEN_GRPC": "127.0.0.1:" + ports["8081"],
                   "SLUICE_LISTEN_ADMIN": "127.0.0.1:" + ports["6070"], "LC_ALL": "C.UTF-8"}
    # Into a file: a daemon that was left would keep a pipe open.
    said = pathlib.Path(folder, "output")
    with said.open("w") as out:
        shell = subprocess.Popen(["bash", "-c", "\n".join(script)], cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=out,
                                 stderr=subprocess.STDOUT, start_new_session=True)
    try:
        shell.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        pass
    finally:
        # A page that failed may have left what it had started; each job is a group of its own.
        for line in subprocess.run(["ps", "-o", "pid=", "-s", str(shell.pid)], capture_output=True, text=True).stdout.split():
            os.kill(int(line), signal.SIGKILL)
    output = said.read_text()
    for number, (commands, wanted) in enumerate(expected, 1):
        got, _, output = output.partition(f"=== end of {number}\n")
        got = got.removesuffix("\n")
        if got != wanted.removesuffix("\n"):
            errors = pathlib.Path(folder, "errors").read_text()
            late = f" within {seconds} s" if shell.returncode is None or shell.returncode < 0 else ""
            return f"{page.name}:{late} after\n{commands}comes\n{got}\nand not\n{wanted}\n{errors}"
    return None
