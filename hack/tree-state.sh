#!/usr/bin/env bash
# Prints a digest of every tracked and untracked file that git does not ignore, so that a check can tell whether a command
# changed the tree, also when the tree was not clean before.
set -euo pipefail
cd "$(git rev-parse --show-toplevel)"
git ls-files -z --cached --others --exclude-standard | sort -z |
  xargs -0 sh -c 'for f; do [ -f "$f" ] && sha256sum "$f" || echo "gone $f"; done' _ | sha256sum
