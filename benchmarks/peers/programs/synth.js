// A cdk8s program: an ApiObject for every object. Its argument says how they are divided into files.
const { readFileSync } = require('node:fs');
const { ApiObject, App, Chart, YamlOutputType } = require('cdk8s');

const app = new App({ outdir: 'dist', yamlOutputType: YamlOutputType[process.argv[2]] });
const chart = new Chart(app, 'bench');
for (const [name, item] of Object.entries(JSON.parse(readFileSync('objects.json', 'utf8')))) {
  new ApiObject(chart, name, item);
}
app.synth();
