{{/* Labels of every object. */}}
{{- define "chat.labels" -}}
app.kubernetes.io/name: chat
app.kubernetes.io/instance: "{{ .Release.Name }}"
app.kubernetes.io/managed-by: kaigen
{{- end }}

{{/* Labels that select the pods of this release. */}}
{{- define "chat.selectorLabels" -}}
app.kubernetes.io/name: chat
app.kubernetes.io/instance: "{{ .Release.Name }}"
{{- end }}
