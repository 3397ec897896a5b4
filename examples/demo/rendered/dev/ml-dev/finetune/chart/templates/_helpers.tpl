{{/* Labels of every object. */}}
{{- define "finetune.labels" -}}
app.kubernetes.io/name: finetune
app.kubernetes.io/instance: "{{ .Release.Name }}"
app.kubernetes.io/managed-by: kaigen
{{- end }}

{{/* Labels that tell this release's pods from all others. */}}
{{- define "finetune.selectorLabels" -}}
app.kubernetes.io/name: finetune
app.kubernetes.io/instance: "{{ .Release.Name }}"
{{- end }}
