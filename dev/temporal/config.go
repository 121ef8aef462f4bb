package temporal

import (
	"time"

	"go.temporal.io/server/common/cluster"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/dynamicconfig"
	"go.temporal.io/server/common/membership/static"
	"go.temporal.io/server/common/primitives"

	"millwright/dev/process"
)

const (
	// The names of the stores in Temporal's configuration.
	defaultStore    = "default"
	visibilityStore = "visibility"
	// One machine needs few shards. Their number cannot change once the database
	// exists.
	historyShards = 4
	clusterName   = "active"
	// clusterID must be the same at every start.
	clusterID = "5f1a3c6e-1d0b-4c53-9a52-6d6977726967"
)

// serverConfig returns the configuration of a server whose frontend has the given port,
// and the addresses of its services. Otherwise the services would find each other through
// the database, where the entries of a killed server remain for a while and delay the next
// start.
func serverConfig(db *databases, frontend int) (*config.Config, map[primitives.ServiceName]static.Hosts, error) {
	free, err := process.FreePorts(3)
	if err != nil {
		return nil, nil, err
	}
	ports := map[primitives.ServiceName]int{
		primitives.FrontendService: frontend,
		primitives.HistoryService:  free[0],
		primitives.MatchingService: free[1],
		primitives.WorkerService:   free[2],
	}
	cfg := &config.Config{
		Persistence: config.Persistence{
			DefaultStore:     defaultStore,
			VisibilityStore:  visibilityStore,
			NumHistoryShards: historyShards,
			DataStores: map[string]config.DataStore{
				defaultStore:    {SQL: db.main},
				visibilityStore: {SQL: db.visibility},
			},
		},
		ClusterMetadata: &cluster.Config{
			FailoverVersionIncrement: 10,
			MasterClusterName:        clusterName,
			CurrentClusterName:       clusterName,
			ClusterInformation: map[string]cluster.ClusterInformation{
				clusterName: {
					Enabled:                true,
					InitialFailoverVersion: 1,
					RPCAddress:             process.Address(frontend),
					ClusterID:              clusterID,
				},
			},
		},
		PublicClient: config.PublicClient{HostPort: process.Address(frontend)},
		Services:     make(map[string]config.Service),
	}
	cfg.Global.Membership = config.Membership{MaxJoinDuration: 30 * time.Second, BroadcastAddress: process.Loopback}
	cfg.Archival.History.State = "disabled"
	cfg.Archival.Visibility.State = "disabled"
	cfg.NamespaceDefaults.Archival.History.State = "disabled"
	cfg.NamespaceDefaults.Archival.Visibility.State = "disabled"
	hosts := make(map[primitives.ServiceName]static.Hosts)
	for name, port := range ports {
		cfg.Services[string(name)] = config.Service{RPC: config.RPC{GRPCPort: port, BindOnIP: process.Loopback}}
		hosts[name] = static.SingleLocalHost(process.Address(port))
	}
	return cfg, hosts, nil
}

// ShortHistories is a namespace whose workflows are to continue as new after a few
// events, for tests of that. A test has to register it.
const ShortHistories = "short-histories"

// dynamicConfig is deploy/temporal/dynamic.yaml, adapted to a machine that runs more. The
// limits of calls are Temporal's defaults there and here, and the partitions of task queues are the
// same, so that tests and figures tell of an installation.
func dynamicConfig() dynamicconfig.StaticClient {
	return dynamicconfig.StaticClient{
		// Search attributes that are added at startup work at once.
		dynamicconfig.ForceSearchAttributesCacheRefreshOnRead.Key(): true,
		// Do not check for newer versions over the network.
		dynamicconfig.EnableServerVersionCheck.Key(): false,

		// One partition per task queue: organizations and addresses take turns in each partition
		// apart, and a task in the wrong one waits to be forwarded.
		dynamicconfig.MatchingNumTaskqueueReadPartitions.Key():  1,
		dynamicconfig.MatchingNumTaskqueueWritePartitions.Key(): 1,

		// Organizations whose workflows wait for a worker take turns (FairnessKey).
		dynamicconfig.MatchingEnableFairness.Key(): true,

		// The default cache is sized for a machine that runs nothing else.
		dynamicconfig.HistoryCacheHostLevelMaxSize.Key(): 8192,

		dynamicconfig.HistoryCountSuggestContinueAsNew.Key(): []dynamicconfig.ConstrainedValue{
			{Constraints: dynamicconfig.Constraints{Namespace: ShortHistories}, Value: 20},
			{Value: 4096}, // the default
		},
	}
}
