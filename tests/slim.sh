#!/bin/sh
# Install the wheel of dist/ from the wheels of a folder, and try it, on a machine without a compiler and without
# network: sh tests/slim.sh FOLDER
set -eu
wheels=$(realpath "$1")
cd "$(dirname "$0")/.."
for compiler in c++ g++ clang++ cc gcc; do
    if command -v "$compiler"; then echo "there is a compiler"; exit 1; fi
done
if python3 -c 'import socket; socket.create_connection(("1.1.1.1", 53), 3)' 2>/dev/null; then
    echo "there is a network"; exit 1
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder"
install="$folder/bin/python -m pip install --quiet --no-index --find-links $wheels"
$install "$(echo dist/*.whl)[compiler]"
"$folder/bin/python" tests/installed.py ziglang
