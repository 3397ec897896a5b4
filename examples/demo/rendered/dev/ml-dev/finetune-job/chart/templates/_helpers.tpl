{{/* Labels of every object. */}}
{{- define "finetune-job.labels" -}}
app.kubernetes.io/name: finetune-job
app.kubernetes.io/instance: "{{ .Release.Name }}"
app.kubernetes.io/managed-by: kaigen
{{- end }}

{{/* Labels that select the pods of this release. */}}
{{- define "finetune-job.selectorLabels" -}}
app.kubernetes.io/name: finetune-job
app.kubernetes.io/instance: "{{ .Release.Name }}"
{{- end }}
