-- Notices about access and sign-in, which are about identities.

-- +goose Up

-- Where the notice is mailed instead of to the person's e-mail address: the address that the person had before. It is
-- erased when the notice is not to be mailed any longer.
ALTER TABLE notices ADD COLUMN mail_to text CHECK (mail_to IS NULL OR mail = 'waiting');
