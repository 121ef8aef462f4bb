package service

import "context"

// KeepWaiting has writes wait for their turn until release is called, so that
// they share the next.
func (s *Service) KeepWaiting(ctx context.Context) (release func(), err error) {
	until := make(chan struct{})
	for range maxConcurrentGroups {
		g, err := s.join(ctx, nil)
		if err != nil {
			return nil, err
		}
		go func() {
			_ = g.run(ctx, func(context.Context, *tx) error {
				<-until
				return errAborted
			})
		}()
	}
	return func() { close(until) }, nil
}

// AddressesWithPending reports how many writes wait for their turn.
func (s *Service) WritesWaiting() int {
	s.writes.mu.Lock()
	defer s.writes.mu.Unlock()
	return len(s.writes.waiting)
}

// Panic is a write that panics after it has asked something.
func (s *Service) Panic(ctx context.Context) error {
	return s.writeTogether(ctx, nil, func(ctx context.Context, t *tx) error {
		t.queue(`INSERT INTO looks_owed (record_id, since) VALUES ('wo_01kjq7k69re00b2a00av14smbj', now())`)
		if err := t.flush(ctx); err != nil {
			return err
		}
		panic("a bug")
	})
}
