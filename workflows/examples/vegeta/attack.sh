#!/bin/sh
# attack.sh URL DURATION asks for a page at a fixed rate, and prints vegeta's report as JSON. vegeta is in its folder.
set -e
here=$(dirname "$0")
echo "GET $1" | "$here/vegeta" attack -rate 100 -duration "$2" | "$here/vegeta" report -type=json
