#!/bin/sh
# Starts the server with its database password, which it only reads from the environment.
set -eu
POSTGRES_PWD=$(cat /run/secrets/temporal_password)
export POSTGRES_PWD
exec /etc/temporal/entrypoint.sh
