-- An organization can require OpenID Connect: its people then sign in neither with passwords nor by links that set one.

-- +goose Up

ALTER TABLE organizations ADD COLUMN openid_required boolean NOT NULL DEFAULT false;
