{{/* Labels of every object. */}}
{{- define "finetune.labels" -}}
app.kubernetes.io/name: finetune
app.kubernetes.io/instance: "{{ .Release.Name }}"
app.kubernetes.io/managed-by: kaigen
{{- end }}

{{/* Labels that select the pods of this release. */}}
{{- define "finetune.selectorLabels" -}}
app.kubernetes.io/name: finetune
app.kubernetes.io/instance: "{{ .Release.Name }}"
{{- end }}
