package workflows

import "go.temporal.io/sdk/workflow"

// wakeChannel returns the channel of the signal wake.
func wakeChannel(ctx workflow.Context) workflow.ReceiveChannel {
	return workflow.GetSignalChannelWithOptions(ctx, SignalWake, workflow.SignalChannelOptions{
		Description: "The service's own: read again what is pending. Losing or repeating it has no effect.",
	})
}

// onSignal adds a branch that discards the channel's waiting signals and then acts.
func onSignal(selector workflow.Selector, channel workflow.ReceiveChannel, act func()) {
	selector.AddReceive(channel, func(c workflow.ReceiveChannel, _ bool) {
		drainSignals(c)
		act()
	})
}

// drainSignals discards every waiting signal: one load covers them all.
func drainSignals(channel workflow.ReceiveChannel) {
	for channel.ReceiveAsync(nil) {
	}
}
