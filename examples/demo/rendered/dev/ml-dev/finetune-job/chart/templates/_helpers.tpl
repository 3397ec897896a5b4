{{/* Labels of every object. */}}
{{- define "finetune-job.labels" -}}
app.kubernetes.io/name: finetune-job
app.kubernetes.io/instance: "{{ .Release.Name }}"
app.kubernetes.io/managed-by: kaigen
{{- end }}

{{/* Labels that tell this release's pods from all others. */}}
{{- define "finetune-job.selectorLabels" -}}
app.kubernetes.io/name: finetune-job
app.kubernetes.io/instance: "{{ .Release.Name }}"
{{- end }}
