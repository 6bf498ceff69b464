#!/bin/sh
# Compresses a file of the folder $FILES. Payload: {"file":"NAME"}; result: {"bytes":SIZE,"file":"NAME.gz"}. A handler to copy, of a
# type without effects that hurt twice (docs/handlers.md): it may be killed anywhere and run again, and leaves the same file.
set -eu

refuse() {
  echo "$1" >&2
  exit 65
}

# The payload is canonical: one line, names in order, no blanks. So one pattern can describe all of it, and nothing else passes.
file=$(LC_ALL=C sed -n 's/^{"file":"\([A-Za-z0-9][A-Za-z0-9._-]*\)"}$/\1/p')
[ -n "$file" ] || refuse 'the payload is not {"file":"NAME"}'
cd "$FILES"
[ -f "$file" ] || refuse "there is no file $file in $FILES"

# The key is the job's each time it runs, and no other job's: so is the name of the unfinished file.
part=.$ONCED_IDEMPOTENCY_KEY.part
gzip -c -n "$file" >"$part"
sync "$part" # on the disk before the job counts as done, as onced does not know of it
mv "$part" "$file.gz"
sync .
printf '{"bytes":%d,"file":"%s.gz"}\n' "$(wc -c <"$file.gz")" "$file"
