#!/bin/sh
# A handler for the campaign: takes a while, fails now and then, is killed now and then, and notes in $NOTES each run, each end, and
# each time that it ran beside itself. What it does is decided by its job and attempt, so a seed repeats it.
exec 9>"$NOTES/$ONCED_OPERATION_ID.lock"
flock -n 9 || echo "$ONCED_OPERATION_ID $ONCED_ATTEMPT" >>"$NOTES/beside-itself"
echo "$ONCED_OPERATION_ID $ONCED_ATTEMPT $ONCED_FENCING_TOKEN" >>"$NOTES/runs"
chance=$(printf '%s' "$SEED $ONCED_OPERATION_ID $ONCED_ATTEMPT" | cksum | cut -d ' ' -f 1)
sleep "0.0$((chance % 7))"
case $((chance / 7 % 10)) in
  0) kill -9 $$ ;;
  1) exit 75 ;;
  2) echo "chance has it" >&2; exit 1 ;;
esac
echo "$ONCED_ATTEMPT"
