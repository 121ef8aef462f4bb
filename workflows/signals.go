package workflows

import "go.temporal.io/sdk/workflow"

// wakeChannel returns the channel of the signal wake.
func wakeChannel(ctx workflow.Context) workflow.ReceiveChannel {
	return signalChannel(ctx, SignalWake, "The service's own: read again what is pending. Losing or repeating it has no effect.")
}

// signalChannel returns the channel of the signal, with the description that operators see.
func signalChannel(ctx workflow.Context, name, description string) workflow.ReceiveChannel {
	return workflow.GetSignalChannelWithOptions(ctx, name, workflow.SignalChannelOptions{Description: description})
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
