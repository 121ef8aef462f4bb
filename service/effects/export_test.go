package effects

import "millwright/service/store"

// DeliveryID is the SQL of a delivery's id, given that of its event's id and of 16 random bytes.
func DeliveryID(event, random string) string {
	return store.Fill(deliveryID, "event", event, "random", random)
}
