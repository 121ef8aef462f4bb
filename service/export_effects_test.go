package service

// DeliveryID is the SQL of a delivery's id, given that of its event's id and of 16 random bytes.
func DeliveryID(event, random string) string {
	return fill(deliveryID, "event", event, "random", random)
}
