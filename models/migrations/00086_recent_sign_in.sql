-- Secrets, roles and ways to sign in take a recent sign-in.

-- +goose Up

ALTER TABLE sessions
    -- When the person last showed who it is; NULL if it is not known, as of an OpenID provider that does not say it.
    ADD COLUMN authenticated_at timestamptz(3),
    -- Until when that is recent. Each action that takes it renews it.
    ADD COLUMN recent_until timestamptz(3);
