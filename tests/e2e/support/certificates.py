"""An authority and certificates by it, by the openssl command, in a folder that goes with its object."""

import os
import subprocess
import tempfile


class Certificates:
    """ca.crt, and NAME.crt with NAME.key for a server at 127.0.0.1 and localhost, a client, and a stranger of another authority."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="sluice-e2e-certificates-")
        for authority in ("ca", "others"):
            self.openssl("req", "-x509", *self.new_key(authority), "-out", self.path(f"{authority}.crt"), "-subj", f"/CN={authority}")
        self.certify("server", "ca")
        self.certify("client", "ca")
        self.certify("stranger", "others")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.folder.cleanup()

    def path(self, name):
        return os.path.join(self.folder.name, name)

    @property
    def ca(self):
        return self.path("ca.crt")

    def pair(self, name):
        return self.path(f"{name}.crt"), self.path(f"{name}.key")

    def new_key(self, name):
        return ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", self.path(f"{name}.key")]

    def certify(self, name, authority):
        request, names = self.path(f"{name}.csr"), self.path(f"{name}.ext")
        self.openssl("req", *self.new_key(name), "-out", request, "-subj", f"/CN={name}")
        with open(names, "w", encoding="ascii") as file:
            file.write(f"subjectAltName=DNS:localhost,IP:127.0.0.1,DNS:{name}.test\n")
        by = ["-CA", self.path(f"{authority}.crt"), "-CAkey", self.path(f"{authority}.key"), "-CAcreateserial"]
        self.openssl("x509", "-req", "-in", request, *by, "-out", self.path(f"{name}.crt"), "-days", "2", "-extfile", names)

    @staticmethod
    def openssl(*arguments):
        subprocess.run(["openssl", *arguments], check=True, capture_output=True, timeout=60)

    def flags(self, *listeners, mutual=False):
        """What makes `sluice serve` speak TLS there."""
        cert, key = self.pair("server")
        flags = []
        for listener in listeners:
            begin = f"--listen.{listener}.tls."
            flags += [begin + "cert", cert, begin + "key", key]
            if mutual:
                flags += [begin + "client_ca", self.ca]
        return flags
