-- Deliveries of the first address, a work order with some, one in progress with answers, and open
-- feedback, both of which everyone may read.
SELECT w.id AS webhook, w.integration_id AS integration, d.id AS delivered, f.id AS failed, d.record_id AS changed,
	(SELECT id FROM people WHERE NOT admin ORDER BY id LIMIT 1) AS person,
	(SELECT id FROM work_orders WHERE inventory_id = @room AND status = 'in_progress' AND form_id IS NOT NULL ORDER BY id DESC LIMIT 1) AS work_order,
	(SELECT id FROM feedback WHERE inventory_id = @room AND status = 'open' ORDER BY id DESC LIMIT 1) AS feedback
FROM webhooks w,
	LATERAL (SELECT id, record_id FROM deliveries WHERE webhook_id = w.id AND status = 'delivered' ORDER BY id DESC LIMIT 1) d,
	LATERAL (SELECT id FROM deliveries WHERE webhook_id = w.id AND status = 'failed' ORDER BY id DESC LIMIT 1) f
WHERE w.id = @webhook
