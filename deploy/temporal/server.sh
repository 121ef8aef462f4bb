#!/bin/sh
# Hands the server its database password, which it takes from the environment only.
set -eu
POSTGRES_PWD=$(cat /run/secrets/temporal_password)
export POSTGRES_PWD
exec /etc/temporal/entrypoint.sh
