"""What the reference implementation says of every file of the corpus, by the file's SHA-256: "refused", or what it read.

Run, in packages/safetensors: npm run --silent corpus | python3 test/golden/verdicts.py > test/golden/verdicts.json
(made with safetensors 0.8.0 and numpy 2.4.6)
"""

import base64
import hashlib
import json
import sys
import tempfile

import safetensors


def content(data: bytes) -> str:
    """The SHA-256 of metadata and tensors, sorted by key."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        with safetensors.safe_open(file.name, "numpy") as opened:
            metadata = opened.metadata() or {}
    digest = hashlib.sha256()
    for key in sorted(metadata):
        digest.update(f"{key}\n{metadata[key]}\n".encode())
    for name, tensor in sorted(safetensors.deserialize(data)):
        digest.update(f"{name}\n{tensor['dtype']}\n{','.join(map(str, tensor['shape']))}\n".encode())
        digest.update(tensor["data"])
    return digest.hexdigest()[:16]


verdicts = {}
for line in sys.stdin:
    data = base64.b64decode(line)
    try:
        verdict = content(data)
    except safetensors.SafetensorError:
        verdict = "refused"
    verdicts[hashlib.sha256(data).hexdigest()[:16]] = verdict
print(json.dumps(verdicts, indent=2))
