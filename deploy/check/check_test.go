// Package check checks the Kubernetes manifests with kustomize's code and Kubernetes's types.
package check

import (
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/json"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// kinds are the types of the objects that the manifests may have.
var kinds = map[string]func() any{
	"v1/Namespace":                           func() any { return &corev1.Namespace{} },
	"v1/Service":                             func() any { return &corev1.Service{} },
	"v1/ServiceAccount":                      func() any { return &corev1.ServiceAccount{} },
	"v1/ConfigMap":                           func() any { return &corev1.ConfigMap{} },
	"apps/v1/Deployment":                     func() any { return &appsv1.Deployment{} },
	"batch/v1/Job":                           func() any { return &batchv1.Job{} },
	"batch/v1/CronJob":                       func() any { return &batchv1.CronJob{} },
	"v1/PersistentVolumeClaim":               func() any { return &corev1.PersistentVolumeClaim{} },
	"policy/v1/PodDisruptionBudget":          func() any { return &policyv1.PodDisruptionBudget{} },
	"networking.k8s.io/v1/NetworkPolicy":     func() any { return &networkingv1.NetworkPolicy{} },
	"autoscaling/v2/HorizontalPodAutoscaler": func() any { return &autoscalingv2.HorizontalPodAutoscaler{} },
	"keda.sh/v1alpha1/ScaledObject":          func() any { return &scaledObject{} },
}

// The manifests build, and each object has only fields that its type has.
func TestManifests(t *testing.T) {
	for directory, want := range map[string][]string{
		"base": {
			"v1/Namespace millwright", "v1/ServiceAccount millwright", "batch/v1/Job migrate", "v1/ConfigMap millwright", "v1/Service api",
			"apps/v1/Deployment api", "apps/v1/Deployment worker", "policy/v1/PodDisruptionBudget api", "policy/v1/PodDisruptionBudget worker",
			"networking.k8s.io/v1/NetworkPolicy api", "networking.k8s.io/v1/NetworkPolicy worker",
		},
		"backup":      {"batch/v1/CronJob backup", "v1/PersistentVolumeClaim backups"},
		"autoscaling": {"apps/v1/Deployment worker", "autoscaling/v2/HorizontalPodAutoscaler api", "keda.sh/v1alpha1/ScaledObject worker"},
	} {
		t.Run(directory, func(t *testing.T) {
			built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), "../kubernetes/"+directory)
			if err != nil {
				t.Fatal(err)
			}
			found := map[string]bool{}
			pods, connections := 0, 0
			for _, r := range built.Resources() {
				kind := r.GetApiVersion() + "/" + r.GetKind()
				name, _, _ := strings.Cut(r.GetName(), "-")
				found[kind+" "+name] = true
				text, err := r.MarshalJSON()
				if err != nil {
					t.Fatal(err)
				}
				if kinds[kind] == nil {
					t.Errorf("%s has no type to check it with", kind)
					continue
				}
				object := kinds[kind]()
				// Like Kubernetes, and unlike encoding/json, it tells upper and lower case apart.
				if problems, err := json.UnmarshalStrict(text, object); err != nil || len(problems) > 0 {
					t.Errorf("%s %s: %v %v", kind, r.GetName(), err, problems)
				}
				if r.GetNamespace() != "millwright" && r.GetKind() != "Namespace" {
					t.Errorf("%s %s is in the namespace %q", kind, r.GetName(), r.GetNamespace())
				}
				checkObject(t, object)
				switch o := object.(type) {
				case *corev1.ConfigMap:
					connections, _ = strconv.Atoi(o.Data["DATABASE_MAX_CONNECTIONS"])
				case *autoscalingv2.HorizontalPodAutoscaler:
					pods += int(o.Spec.MaxReplicas) + 1 // one more during an update
				case *scaledObject:
					pods += int(*o.Spec.MaxReplicaCount) + 1
				}
			}
			// settings.env names this number.
			if pods > 0 && pods*connections != 160 {
				t.Errorf("%d pods with %d connections each", pods, connections)
			}
			for _, object := range want {
				if !found[object] {
					t.Errorf("%s is missing among %v", object, found)
				}
			}
		})
	}
}

// scaledObject has the fields of KEDA's type that the manifests use, as of KEDA 2.20. Its own
// package has 500 dependencies more than Kubernetes's.
type scaledObject struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		ScaleTargetRef struct {
			Name string `json:"name"`
		} `json:"scaleTargetRef"`
		MinReplicaCount *int32 `json:"minReplicaCount"`
		MaxReplicaCount *int32 `json:"maxReplicaCount"`
		Fallback        struct {
			FailureThreshold int32  `json:"failureThreshold"`
			Replicas         int32  `json:"replicas"`
			Behavior         string `json:"behavior"`
		} `json:"fallback"`
		Triggers []struct {
			Type       string            `json:"type"`
			MetricType string            `json:"metricType"`
			Metadata   map[string]string `json:"metadata"`
		} `json:"triggers"`
	} `json:"spec"`
}

// checkObject checks that selectors select the pods that they are for, and that pods are
// confined.
func checkObject(t *testing.T, object any) {
	t.Helper()
	switch o := object.(type) {
	case *appsv1.Deployment:
		checkGrace(t, o)
		for label, value := range o.Spec.Selector.MatchLabels {
			if o.Spec.Template.Labels[label] != value {
				t.Errorf("%s does not select its own pods", o.Name)
			}
		}
		checkPod(t, o.Name, o.Spec.Template.Spec)
	case *batchv1.Job:
		checkPod(t, o.Name, o.Spec.Template.Spec)
	case *batchv1.CronJob:
		checkPod(t, o.Name, o.Spec.JobTemplate.Spec.Template.Spec)
	}
}

// checkGrace checks that an API server serves on until no connection comes, and may finish its calls.
func checkGrace(t *testing.T, o *appsv1.Deployment) {
	t.Helper()
	for _, variable := range o.Spec.Template.Spec.Containers[0].Env {
		if variable.Name == "SHUTDOWN_DELAY" {
			if delay, err := time.ParseDuration(variable.Value); err != nil || delay < 5*time.Second || delay+25*time.Second > time.Duration(*o.Spec.Template.Spec.TerminationGracePeriodSeconds)*time.Second {
				t.Errorf("%s stops with SHUTDOWN_DELAY=%s", o.Name, variable.Value)
			}
			return
		}
	}
	if strings.HasPrefix(o.Name, "api") {
		t.Errorf("%s refuses connections during an update: SHUTDOWN_DELAY is not set", o.Name)
	}
}

func checkPod(t *testing.T, name string, pod corev1.PodSpec) {
	t.Helper()
	if pod.EnableServiceLinks == nil || *pod.EnableServiceLinks {
		t.Errorf("%s gets variables of the namespace's services", name)
	}
	ports := map[string]bool{}
	for _, c := range pod.Containers {
		for _, p := range c.Ports {
			ports[p.Name] = true
		}
		s := c.SecurityContext
		if s == nil || s.Capabilities == nil || pod.SecurityContext == nil {
			t.Errorf("%s is not confined", name)
			continue
		}
		set := func(b *bool, want bool) bool { return b != nil && *b == want }
		if !set(s.ReadOnlyRootFilesystem, true) || !set(s.AllowPrivilegeEscalation, false) || !set(pod.SecurityContext.RunAsNonRoot, true) || len(s.Capabilities.Drop) != 1 {
			t.Errorf("%s is not confined", name)
		}
		if c.Resources.Limits.Memory().IsZero() || c.Resources.Requests.Cpu().IsZero() {
			t.Errorf("%s has no limits", name)
		}
		for _, probe := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
			if probe != nil && probe.HTTPGet != nil && !ports[probe.HTTPGet.Port.StrVal] {
				t.Errorf("%s is probed on the unknown port %s", name, probe.HTTPGet.Port.StrVal)
			}
		}
	}
}
