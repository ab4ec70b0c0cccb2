package v1alpha1

import (
	"regexp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ConcurrencyPolicy is the treatment of a due run while another run of the schedule has not ended.
// +kubebuilder:validation:Enum=Allow;Forbid;Replace
type ConcurrencyPolicy string

// Concurrency policies.
const (
	// AllowConcurrent starts the run.
	AllowConcurrent ConcurrencyPolicy = "Allow"
	// ForbidConcurrent lets it wait until the other one has ended, for as long as startingDeadlineSeconds allows.
	ForbidConcurrent ConcurrencyPolicy = "Forbid"
	// ReplaceConcurrent cancels the other one, and starts the run when that has ended.
	ReplaceConcurrent ConcurrencyPolicy = "Replace"
)

// ScheduleSourceType is the origin of the revisions that a schedule measures.
// +kubebuilder:validation:Enum=Image;Revisions;Time
type ScheduleSourceType string

// Types of sources.
const (
	// ImageSource measures an image when its tag names another digest than before.
	ImageSource ScheduleSourceType = "Image"
	// RevisionSource measures the BenchmarkRevisions that CI reported.
	RevisionSource ScheduleSourceType = "Revisions"
	// TimeSource measures an image at every due time, whether or not it changed.
	TimeSource ScheduleSourceType = "Time"
)

// ScheduledImage is an image in a registry that answers without credentials, and that the operator may ask (--registries).
type ScheduledImage struct {
	// name of the image, such as ghcr.io/acme/app:main. Its digest is looked up when a run is due, and the run has that digest.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=384
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9][A-Za-z0-9._:/@-]*$`
	Name string `json:"name"`
}

// TakeRevisions is which of the recorded revisions are measured.
// +kubebuilder:validation:Enum=Newest;Every
type TakeRevisions string

// Which revisions are measured.
const (
	// TakeNewest measures the newest one at every due time. Those before it are not measured, and stay for a search for the commit
	// that made a change.
	TakeNewest TakeRevisions = "Newest"
	// TakeEvery measures all, one at every due time, the oldest first.
	TakeEvery TakeRevisions = "Every"
)

// RecordedRevisions are the BenchmarkRevisions of the series.
type RecordedRevisions struct {
	// take is Newest or Every.
	// +optional
	// +kubebuilder:default=Newest
	Take TakeRevisions `json:"take,omitempty"`
}

// ScheduleSource is the origin of the revisions that a schedule measures, in the member that type names.
// +union
// +kubebuilder:validation:XValidation:rule="has(self.image) == (self.type == 'Image')",message="image belongs to type Image, which needs it"
// +kubebuilder:validation:XValidation:rule="!has(self.revisions) || self.type == 'Revisions'",message="revisions belongs to type Revisions"
// +kubebuilder:validation:XValidation:rule="has(self.time) == (self.type == 'Time')",message="time belongs to type Time, which needs it"
type ScheduleSource struct {
	// type selects the origin of the revisions.
	// +unionDiscriminator
	// +required
	Type ScheduleSourceType `json:"type"`

	// image is measured when its tag names another digest than before.
	// +unionMember
	// +optional
	Image *ScheduledImage `json:"image,omitempty"`

	// revisions that were recorded are measured.
	// +unionMember
	// +optional
	Revisions *RecordedRevisions `json:"revisions,omitempty"`

	// time measures this image at every due time.
	// +unionMember
	// +optional
	Time *ScheduledImage `json:"time,omitempty"`
}

// Revision is a state of the program, and the image that holds it.
type Revision struct {
	// revision of the program, such as the hash of a commit; of an image that names none in its label
	// org.opencontainers.image.revision, its digest.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9][A-Za-z0-9._:/+-]*$`
	Revision string `json:"revision"`

	// image that holds it, by digest: ghcr.io/acme/app@sha256:…
	// +required
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9][A-Za-z0-9._:/-]*@sha256:[a-f0-9]{64}$`
	Image string `json:"image"`
}

// As the API server checks them.
var (
	revisionForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/+-]{0,127}$`)
	imageForm    = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/-]*@sha256:[a-f0-9]{64}$`)
)

const longestImage = 512

// WellFormed reports whether the API server takes both.
func (r Revision) WellFormed() bool {
	return revisionForm.MatchString(r.Revision) && len(r.Image) <= longestImage && imageForm.MatchString(r.Image)
}

// RunTemplateMetadata holds labels and annotations that are added to the runs of a schedule.
type RunTemplateMetadata struct {
	// labels of the runs. Those of assay.dev are the operator's.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(k) <= 317 && size(self[k]) <= 63)",message="a key of a label has at most 317 and a value at most 63 characters"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.startsWith('assay.dev/'))",message="labels of assay.dev are the operator's"
	Labels map[string]string `json:"labels,omitempty"`

	// annotations of the runs.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(k) <= 317 && size(self[k]) <= 4096)",message="a key of an annotation has at most 317 and a value at most 4096 characters"
	Annotations map[string]string `json:"annotations,omitempty"`
}

// BenchmarkRunTemplate is the template of the runs of a schedule.
type BenchmarkRunTemplate struct {
	// metadata of the runs.
	// +optional
	Metadata RunTemplateMetadata `json:"metadata,omitzero"`

	// spec of the runs, with one arm: head. Each run has the revision as head, beside it in the same blocks its predecessor and the
	// anchor, with head's parameters and their own images, and the anchor is the baseline. Gates without a candidate judge head.
	// +required
	// +kubebuilder:validation:XValidation:rule="size(self.arms) == 1 && self.arms[0].name == 'head'",message="a schedule's runs have one arm, head: its predecessor and the anchor are added to it"
	// +kubebuilder:validation:XValidation:rule="self.arms.all(a, !has(a.image) && !has(a.builds) && !(has(a.baseline) && a.baseline))",message="head must not set image, builds or baseline: the source of the schedule sets its image, and the anchor is the baseline"
	// +kubebuilder:validation:XValidation:rule="!has(self.search)",message="a series follows ratios, and a search has none: leave search out"
	// +kubebuilder:validation:XValidation:rule="!has(self.suspend) && !has(self.cancel) && !has(self.ttlSecondsAfterFinished)",message="suspend, cancel and ttlSecondsAfterFinished belong to one run: suspend the schedule, and limit its history"
	Spec BenchmarkRunSpec `json:"spec"`
}

// OnChange is the reaction to a confirmed change of the series, in addition to the event.
// +kubebuilder:validation:MinProperties=1
type OnChange struct {
	// locate searches the revisions between the two sides of the change for those that made it: the recorded ones, or those that have points.
	// Without it no search is started.
	// +optional
	Locate *LocateChange `json:"locate,omitempty"`
}

// LocateChange limits the cost of a search. A search keeps the limits with which it began.
type LocateChange struct {
	// waves is how many waves there may be. Each measures up to 16 revisions in the same blocks, as one run.
	// +optional
	// +kubebuilder:default=6
	// +kubebuilder:validation:Minimum=2
	// +kubebuilder:validation:Maximum=20
	Waves int32 `json:"waves,omitempty"`

	// runs is how many runs there may be: a wave whose run was deleted, or ended without an analysis, is measured again.
	// +optional
	// +kubebuilder:default=8
	// +kubebuilder:validation:Minimum=2
	// +kubebuilder:validation:Maximum=64
	Runs int32 `json:"runs,omitempty"`

	// within is how long after its beginning a search starts runs.
	// +optional
	// +kubebuilder:default="24h"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1m')",message="must be a time such as 24h, of at least 1m"
	Within metav1.Duration `json:"within,omitempty,omitzero"`
}

// BenchmarkScheduleSpec defines the revisions to measure, the times, and the retention.
// +kubebuilder:validation:XValidation:rule="self.series == oldSelf.series",message="series is immutable: its history is in another one; create a new schedule"
type BenchmarkScheduleSpec struct {
	// series that the runs add to: the name that points, changes and recorded revisions share in this namespace. One schedule adds to a
	// series; of several the oldest does.
	// +required
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:MaxLength=63
	Series string `json:"series"`

	// schedule in the format of cron: minute, hour, day of month, month and day of week, such as "0 2 * * *"; or @hourly, @daily,
	// @weekly, @monthly, @yearly.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="!self.contains('TZ=')",message="write the time zone into timeZone"
	// +kubebuilder:validation:XValidation:rule="!self.contains('@every')",message="@every is not supported, because it has no fixed times: use */30 * * * * for every half hour"
	Schedule string `json:"schedule"`

	// timeZone of the schedule, a name of the IANA database such as Europe/Berlin; UTC without it.
	// +optional
	// +kubebuilder:default=UTC
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9][A-Za-z0-9._/+-]*$`
	// +kubebuilder:validation:XValidation:rule="self != 'Local'",message="name the time zone: that of the operator's machine is not known here"
	TimeZone string `json:"timeZone,omitempty"`

	// suspend starts no further runs. Those that are under way go on: each has its own suspend.
	// +optional
	Suspend *bool `json:"suspend,omitempty"`

	// concurrencyPolicy is the treatment of a due run while another run of the schedule has not ended.
	// +optional
	// +kubebuilder:default=Forbid
	ConcurrencyPolicy ConcurrencyPolicy `json:"concurrencyPolicy,omitempty"`

	// startingDeadlineSeconds is how late a run may start. One that could not start by then is missed. Without it, the newest due time
	// stays due until the next one.
	// +optional
	// +kubebuilder:validation:Minimum=10
	StartingDeadlineSeconds *int64 `json:"startingDeadlineSeconds,omitempty"`

	// successfulRunsHistoryLimit is how many runs that ended with an analysis stay as objects. Ledgers and the history stay.
	// +optional
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	SuccessfulRunsHistoryLimit *int32 `json:"successfulRunsHistoryLimit,omitempty"`

	// failedRunsHistoryLimit is how many runs that ended without one stay.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	FailedRunsHistoryLimit *int32 `json:"failedRunsHistoryLimit,omitempty"`

	// revisionHistoryLimit is how many BenchmarkRevisions of the series stay that were measured or passed over.
	// +optional
	// +kubebuilder:default=200
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`

	// source is the origin of the revisions to measure.
	// +required
	Source ScheduleSource `json:"source"`

	// anchor is the revision that every other one is compared with. The default is the first revision that was measured. After a
	// change of the anchor, the next run measures the old and the new one together, so that the series continues.
	// +optional
	Anchor *Revision `json:"anchor,omitempty"`

	// runTemplate is the template of the runs. A change of the measured workload starts another segment of the series.
	// +required
	RunTemplate BenchmarkRunTemplate `json:"runTemplate"`

	// onChange is the reaction to a confirmed change. Without it the change is only reported.
	// +optional
	OnChange *OnChange `json:"onChange,omitempty"`
}

// ScheduledRun is a run of a schedule, or a due time without one.
type ScheduledRun struct {
	// sequence is the number that the schedule gave it. No number is given twice.
	// +required
	// +kubebuilder:validation:Minimum=1
	Sequence int64 `json:"sequence"`

	// scheduleTime is the due time that it is for; a run that confirms or locates a change has the time at which it was asked for.
	// +required
	ScheduleTime metav1.Time `json:"scheduleTime"`

	// name of the BenchmarkRun. A due time without one has a gap in its place.
	// +optional
	// +kubebuilder:validation:MaxLength=52
	Name string `json:"name,omitempty"`

	// uid of the BenchmarkRun, once it was created.
	// +optional
	// +kubebuilder:validation:MaxLength=36
	UID string `json:"uid,omitempty"`

	// arms are the revisions that are measured, by the name of their arm.
	// +optional
	// +listType=map
	// +listMapKey=arm
	// +kubebuilder:validation:MaxItems=16
	Arms []ScheduledArm `json:"arms,omitempty"`

	// gap is why nothing is measured at this due time.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Gap string `json:"gap,omitempty"`

	// confirms is the change that a confirming run is for.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Confirms string `json:"confirms,omitempty"`

	// locates is the change whose culprits the run is one wave of the search for.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Locates string `json:"locates,omitempty"`

	// wave is the number of that wave, from 1.
	// +optional
	// +kubebuilder:validation:Minimum=1
	Wave int32 `json:"wave,omitempty"`

	// blocks of that wave.
	// +optional
	// +kubebuilder:validation:Minimum=1
	Blocks int32 `json:"blocks,omitempty"`
}

// ScheduledArm is the revision of one arm.
type ScheduledArm struct {
	// arm that the revision is measured as.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Arm string `json:"arm"`

	Revision `json:",inline"`
}

// Condition types of a BenchmarkSchedule. Both are positive: True is the state that the name describes.
const (
	// ConditionScheduled is True while runs start at their times; with False the message names the field to change, or the
	// reason for the wait.
	ConditionScheduled = "Scheduled"
	// ConditionRecorded is True while results are added to the history; with False the message names the fault to repair. Nothing is lost
	// meanwhile.
	ConditionRecorded = "Recorded"
)

// Condition reasons of a BenchmarkSchedule, beside those of a run.
const (
	ReasonWaiting         = "WaitingForTime"
	ReasonRunStarting     = "RunStarting"
	ReasonRunActive       = "RunActive"
	ReasonReplacing       = "ReplacingRun"
	ReasonLocating        = "LocatingChange"
	ReasonNothingNew      = "NothingNew"
	ReasonDeadlineMissed  = "DeadlineMissed"
	ReasonScheduleInvalid = "ScheduleInvalid"
	ReasonNeverDue        = "NeverDue"
	ReasonClockBehind     = "ClockBehind"
	ReasonSeriesTaken     = "SeriesTaken"
	ReasonNumbersUsedUp   = "NumbersUsedUp"
	ReasonImageUnknown    = "ImageUnknown"
	ReasonImageVanished   = "ImageVanished"
	ReasonRunNameTaken    = "RunNameTaken"
	ReasonRecorded        = "Recorded"
	ReasonHistoryAway     = "HistoryUnreachable"
)

// BenchmarkScheduleStatus is where a schedule stands.
type BenchmarkScheduleStatus struct {
	// lastScheduleTime is the newest due time that was dealt with: by a run, or because there was nothing to measure.
	// +optional
	LastScheduleTime *metav1.Time `json:"lastScheduleTime,omitempty"`

	// nextScheduleTime is the next due time.
	// +optional
	NextScheduleTime *metav1.Time `json:"nextScheduleTime,omitempty"`

	// missed counts the due times that passed without being dealt with, since the schedule was created.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Missed int64 `json:"missed,omitempty"`

	// lastSequence is the newest number that was given.
	// +optional
	// +kubebuilder:validation:Minimum=0
	LastSequence int64 `json:"lastSequence,omitempty"`

	// next has its number and is about to be created.
	// +optional
	Next *ScheduledRun `json:"next,omitempty"`

	// active are the runs whose results are not in the history yet.
	// +optional
	// +listType=map
	// +listMapKey=sequence
	// +kubebuilder:validation:MaxItems=64
	Active []ScheduledRun `json:"active,omitempty"`

	// anchor is the revision that the others are compared with.
	// +optional
	Anchor *Revision `json:"anchor,omitempty"`

	// head is the revision that was taken last.
	// +optional
	Head *Revision `json:"head,omitempty"`

	// predecessor is the newest revision that was measured: the next one is compared with it.
	// +optional
	Predecessor *Revision `json:"predecessor,omitempty"`

	// pendingRevisions counts the recorded revisions that were neither measured nor passed over.
	// +optional
	// +kubebuilder:validation:Minimum=0
	PendingRevisions int32 `json:"pendingRevisions,omitempty"`

	// suspicion is the change that a confirming run is under way or due for.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Suspicion string `json:"suspicion,omitempty"`

	// locating is the change whose culprits are searched, or are about to be.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Locating string `json:"locating,omitempty"`

	// lastWave is the number of the newest run of a search. Where it is the newest of all, the point that is due goes first.
	// +optional
	// +kubebuilder:validation:Minimum=0
	LastWave int64 `json:"lastWave,omitempty"`

	// history is where that of the namespace lies: the series of all its schedules, and their changes.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	History string `json:"history,omitempty"`

	// observedGeneration is the generation this status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions describe where the schedule stands and what to do.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// BenchmarkSchedule measures a program repeatedly, and adds the results to a series.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=bs,categories=assay
// +kubebuilder:printcolumn:name="Schedule",type=string,JSONPath=`.spec.schedule`
// +kubebuilder:printcolumn:name="Series",type=string,JSONPath=`.spec.series`
// +kubebuilder:printcolumn:name="Suspend",type=boolean,JSONPath=`.spec.suspend`
// +kubebuilder:printcolumn:name="Last",type=date,JSONPath=`.status.lastScheduleTime`
// +kubebuilder:printcolumn:name="Runs",type=integer,JSONPath=`.status.lastSequence`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Scheduled")].message`
// +kubebuilder:printcolumn:name="Suspicion",type=string,JSONPath=`.status.suspicion`,priority=1
// +kubebuilder:printcolumn:name="Locating",type=string,JSONPath=`.status.locating`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 41",message="a schedule's name has at most 41 characters: the names of its runs are made from it"
type BenchmarkSchedule struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is that of every object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec defines the revisions to measure, and the times.
	// +required
	Spec BenchmarkScheduleSpec `json:"spec"`

	// status is where it stands.
	// +optional
	Status BenchmarkScheduleStatus `json:"status,omitzero"`
}

// BenchmarkScheduleList is a list of BenchmarkSchedules.
// +kubebuilder:object:root=true
type BenchmarkScheduleList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []BenchmarkSchedule `json:"items"`
}
