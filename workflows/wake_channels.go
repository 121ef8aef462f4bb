package workflows

import "go.temporal.io/sdk/workflow"

// wakeChannels are the channels of the wake signal's names.
type wakeChannels []workflow.ReceiveChannel

func newWakeChannels(ctx workflow.Context) wakeChannels {
	options := workflow.SignalChannelOptions{Description: "The service's own: read again what is pending. Losing or repeating it changes nothing."}
	return wakeChannels{
		workflow.GetSignalChannelWithOptions(ctx, SignalWakePrevious, options),
		workflow.GetSignalChannelWithOptions(ctx, SignalWake, options),
	}
}

// drain discards the waiting wakes: one load covers them all.
func (c wakeChannels) drain() {
	for _, wakes := range c {
		drainSignals(wakes)
	}
}

func (c wakeChannels) empty() bool {
	for _, wakes := range c {
		if wakes.Len() > 0 {
			return false
		}
	}
	return true
}

// addTo adds the wakes to the selector.
func (c wakeChannels) addTo(selector workflow.Selector, woken func()) {
	for _, wakes := range c {
		selector.AddReceive(wakes, func(workflow.ReceiveChannel, bool) { c.drain(); woken() })
	}
}
