// A data source over Prometheus' HTTP API. Grafana's own sends its queries through Grafana's server, which makes frames of the answers;
// here the browser does.
import { DataSourceApi, FieldType } from '@grafana/data';
import { sceneGraph } from '@grafana/scenes';

const type = 'prometheus';
export const settings = {
  id: 1,
  uid: 'prometheus',
  type,
  name: 'Prometheus',
  isDefault: true,
  readOnly: true,
  access: 'proxy',
  jsonData: {},
  meta: { id: type, name: 'Prometheus', type: 'datasource', module: '', baseUrl: '', info: { logos: { small: '', large: '' } } },
};

async function ask(path, parameters) {
  const response = await fetch(`/prometheus/api/v1/${path}`, { method: 'POST', body: new URLSearchParams(parameters) });
  const answer = await response.json();
  if (answer.status !== 'success') {
    throw new Error(`${answer.errorType}: ${answer.error}`);
  }
  return answer.data;
}

const number = (text) => ({ '+Inf': Infinity, '-Inf': -Infinity, NaN: NaN })[text] ?? Number(text);

function legendOf(query, labels) {
  if (query.legendFormat && query.legendFormat !== '__auto') {
    return query.legendFormat.replace(/\{\{\s*(.+?)\s*\}\}/g, (_, name) => labels[name] ?? '');
  }
  const { __name__: name = '', ...others } = labels;
  const rest = Object.entries(others)
    .map(([key, value]) => `${key}="${value}"`)
    .join(', ');
  return rest ? `${name}{${rest}}` : name || query.expr;
}

// seriesFrames are one frame for each series, with a time and a value. A range has a row for each step, null where there is no sample.
function seriesFrames(query, result, steps) {
  return result.map(({ metric, value, values }) => {
    const samples = new Map((values ?? [value]).map(([time, text]) => [Math.round(time * 1000), number(text)]));
    const times = steps ?? [...samples.keys()];
    const name = legendOf(query, metric);
    return {
      refId: query.refId,
      name,
      length: times.length,
      meta: { type: 'timeseries-multi' },
      fields: [
        { name: 'Time', type: FieldType.time, config: {}, values: times },
        {
          name: 'Value',
          type: FieldType.number,
          labels: metric,
          config: { displayNameFromDS: name },
          values: times.map((time) => samples.get(time) ?? null),
        },
      ],
    };
  });
}

// tableFrame has a row for each series, and its labels as columns.
function tableFrame(query, result, several) {
  const labels = [...new Set(result.flatMap(({ metric }) => Object.keys(metric)))].sort();
  return {
    refId: query.refId,
    length: result.length,
    meta: { type: 'table' },
    fields: [
      { name: 'Time', type: FieldType.time, config: {}, values: result.map(({ value }) => Math.round(value[0] * 1000)) },
      ...labels.map((label) => ({
        name: label,
        type: FieldType.string,
        config: {},
        values: result.map(({ metric }) => metric[label] ?? null),
      })),
      {
        name: several ? `Value #${query.refId}` : 'Value',
        type: FieldType.number,
        config: {},
        values: result.map(({ value }) => number(value[1])),
      },
    ],
  };
}

const interpolated = (request, text, format) =>
  sceneGraph.interpolate(request.scopedVars.__sceneObject.value.valueOf(), text, request.scopedVars, format);
// A variable with several values is an alternative of a regular expression.
const asRegexp = (value) => {
  const escape = (one) => one.replace(/[\\^$*+?.()|[\]{}]/g, '\\\\$&');
  return Array.isArray(value) ? (value.length === 1 ? escape(value[0]) : `(${value.map(escape).join('|')})`) : value;
};

class Prometheus extends DataSourceApi {
  constructor() {
    super(settings);
  }

  async query(request) {
    const from = Math.floor(request.range.from.valueOf() / 1000);
    const to = Math.ceil(request.range.to.valueOf() / 1000);
    const targets = request.targets.filter((target) => target.expr && !target.hide);
    const tables = targets.filter((target) => target.format === 'table').length;
    const frames = await Promise.all(
      targets.map(async (target) => {
        const step = Math.max(15, Math.ceil(request.intervalMs / 1000));
        const query = interpolated(
          request,
          target.expr.replaceAll('$__range', `${to - from}s`).replaceAll('$__rate_interval', `${Math.max(step + 15, 60)}s`),
          asRegexp,
        );
        if (target.instant) {
          const { result } = await ask('query', { query, time: String(to) });
          return target.format === 'table'
            ? result.length
              ? [tableFrame(target, result, tables > 1)]
              : []
            : seriesFrames(target, result);
        }
        const start = Math.floor(from / step) * step;
        const { result } = await ask('query_range', { query, start: String(start), end: String(to), step: String(step) });
        const steps = Array.from({ length: Math.floor((to - start) / step) + 1 }, (_, i) => (start + i * step) * 1000);
        return seriesFrames(target, result, steps);
      }),
    );
    return { data: frames.flat() };
  }

  // metricFindQuery answers label_values(selector, label), the only kind of query that the variables have.
  async metricFindQuery(query, request) {
    const text = interpolated(request, typeof query === 'string' ? query : query.query, asRegexp);
    const [, selector, label] = text.match(/^label_values\((?:(.*),\s*)?([a-zA-Z_]\w*)\)$/s) ?? [];
    if (!label) {
      throw new Error(`unknown query of a variable: ${text}`);
    }
    const { from, to } = request.range;
    const response = await fetch(
      `/prometheus/api/v1/label/${label}/values?` +
        new URLSearchParams({
          ...(selector && { 'match[]': selector }),
          start: String(from.unix()),
          end: String(to.unix()),
        }),
    );
    return (await response.json()).data.map((value) => ({ text: value, value }));
  }

  testDatasource() {
    return Promise.resolve({ status: 'success', message: '' });
  }
}

export const source = new Prometheus();
