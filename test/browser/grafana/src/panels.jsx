// Panels over the components of @grafana/ui: Grafana's own panels, which wrap the same components, are on no registry. The state timeline
// and the bar chart have no published component and are drawn here.
import {
  FieldMatcherID,
  FieldType,
  PanelPlugin,
  ReducerID,
  VizOrientation,
  cacheFieldDisplayNames,
  fieldMatchers,
  formattedValueToString,
  getDisplayValueAlignmentFactors,
  getFieldDisplayName,
  getFieldDisplayValues,
  getFieldSeriesColor,
  identityOverrideProcessor,
  outerJoinDataFrames,
  stringOverrideProcessor,
} from '@grafana/data';
import { BarGauge, BigValue, TimeSeries, VizRepeater, useTheme2, measureText } from '@grafana/ui';
import { TableNG } from '@grafana/ui/unstable';

// Says what Grafana says of a panel without data: its text for missing values.
function Empty({ fieldConfig }) {
  return <div className="panel-empty">{fieldConfig.defaults.noValue ?? 'No data'}</div>;
}

const isEmpty = (data) => !data.series.some((frame) => frame.length > 0 && frame.fields.length > 0);

function valuesOf(props, theme) {
  return getFieldDisplayValues({
    fieldConfig: props.fieldConfig,
    reduceOptions: { calcs: [ReducerID.lastNotNull], ...props.options.reduceOptions },
    replaceVariables: props.replaceVariables,
    theme,
    data: props.data.series,
    timeZone: props.timeZone,
  });
}

function Stat(props) {
  const theme = useTheme2();
  const { width, height, options, data, renderCounter } = props;
  return (
    <VizRepeater
      getValues={() => valuesOf(props, theme)}
      width={width}
      height={height}
      source={data}
      renderCounter={renderCounter}
      orientation={VizOrientation.Auto}
      autoGrid
      getAlignmentFactors={(values, w, h) => getDisplayValueAlignmentFactors(values, w, h)}
      renderValue={({ value, width, height, count, alignmentFactors }) => (
        <BigValue
          value={value.display}
          count={count}
          width={width}
          height={height}
          colorMode={options.colorMode}
          graphMode={options.graphMode}
          justifyMode={options.justifyMode}
          textMode={options.textMode}
          alignmentFactors={alignmentFactors}
          theme={theme}
          hasLinks={false}
          text={options.text}
          wideLayout={options.wideLayout}
        />
      )}
    />
  );
}

function Bars(props) {
  const theme = useTheme2();
  const { width, height, options, data, renderCounter } = props;
  if (isEmpty(data)) {
    return <Empty {...props} />;
  }
  // Grafana takes the sizes of an automatic layout from its defaults.
  const manual = options.sizing === 'manual';
  return (
    <div style={{ width, height, overflow: 'hidden auto' }}>
      <VizRepeater
        getValues={() => valuesOf(props, theme)}
        width={width}
        height={height}
        source={data}
        renderCounter={renderCounter}
        orientation={options.orientation}
        minVizWidth={8}
        minVizHeight={manual ? options.minVizHeight : 16}
        maxVizHeight={manual ? options.maxVizHeight : 300}
        itemSpacing={8}
        getAlignmentFactors={(values, w, h) => getDisplayValueAlignmentFactors(values, w, h)}
        renderValue={({ value, width, height, orientation, alignmentFactors }) => (
          <BarGauge
            value={value.display}
            width={width}
            height={height}
            orientation={orientation}
            field={value.field}
            display={value.view?.getFieldDisplayProcessor(value.colIndex)}
            displayMode={options.displayMode}
            itemSpacing={8}
            showUnfilled={options.showUnfilled}
            namePlacement={options.namePlacement}
            valueDisplayMode={options.valueMode}
            theme={theme}
            alignmentFactors={alignmentFactors}
            text={options.text}
          />
        )}
      />
    </div>
  );
}

function Table(props) {
  const { data, width, height, options, fieldConfig, timeRange } = props;
  if (isEmpty(data)) {
    return <Empty {...props} />;
  }
  cacheFieldDisplayNames(data.series);
  return (
    <TableNG
      data={data.series[0]}
      width={width}
      height={height}
      noHeader={!options.showHeader}
      cellHeight={options.cellHeight}
      noValue={fieldConfig.defaults.noValue}
      fieldConfig={fieldConfig}
      timeRange={timeRange}
      enableVirtualization={false}
      resizable
    />
  );
}

function Lines(props) {
  const { data, width, height, timeRange, timeZone, options } = props;
  if (isEmpty(data)) {
    return <Empty {...props} />;
  }
  return (
    <TimeSeries frames={data.series} width={width} height={height} timeRange={timeRange} timeZone={timeZone} legend={options.legend} />
  );
}

// The published graph draws lines over any ascending number. The opacity of an XY chart is that of its points, of a graph that of its area.
function Curves(props) {
  const { data, width, height, timeRange, timeZone, options } = props;
  if (isEmpty(data)) {
    return <Empty {...props} />;
  }
  const frames = data.series.map((frame) => ({
    ...frame,
    fields: frame.fields.map((field) => ({
      ...field,
      config: {
        ...field.config,
        custom: {
          ...field.config.custom,
          fillOpacity: 0,
          showPoints: field.config.custom?.show === 'lines' ? 'never' : 'always',
          pointSize: field.config.custom?.pointSize?.fixed ?? 5,
        },
      },
    })),
  }));
  const x = fieldMatchers.get(FieldMatcherID.byName).get('x');
  const y = (field) => field.type === FieldType.number && field.name !== 'x';
  return (
    <TimeSeries
      frames={frames}
      width={width}
      height={height}
      timeRange={timeRange}
      timeZone={timeZone}
      legend={options.legend}
      fields={{ x, y }}
      preparePlotFrame={(frames) => outerJoinDataFrames({ frames, joinBy: x, keep: y, nullMode: () => 'null', keepOriginIndices: true })}
    />
  );
}

function Timeline(props) {
  const { data, width, height, timeRange } = props;
  if (isEmpty(data)) {
    return <Empty {...props} />;
  }
  const rows = data.series.map((frame) => [frame.fields[0], frame.fields[1], getFieldDisplayName(frame.fields[1], frame, data.series)]);
  const label = Math.min(width / 2, Math.max(...rows.map(([, , name]) => measureText(name, 12).width)) + 8);
  const from = timeRange.from.valueOf();
  const scale = (width - label) / (timeRange.to.valueOf() - from);
  const row = Math.min(40, height / rows.length);
  return rows.map(([times, value, name]) => (
    <div key={name} style={{ height: row, position: 'relative', display: 'flex', alignItems: 'center' }}>
      <span style={{ width: label, overflow: 'hidden', fontSize: 12 }}>{name}</span>
      {value.values.map((one, i) => {
        if (one === null) {
          return null;
        }
        const display = value.display(one);
        const until = times.values[i + 1] ?? timeRange.to.valueOf();
        const left = label + Math.max(0, times.values[i] - from) * scale;
        return (
          <span
            key={i}
            title={display.text}
            style={{
              position: 'absolute',
              left,
              width: (until - Math.max(times.values[i], from)) * scale + 0.5,
              height: row * 0.8,
              background: display.color,
            }}
          />
        );
      })}
    </div>
  ));
}

function Stacks(props) {
  const theme = useTheme2();
  const { data, width, height } = props;
  if (isEmpty(data)) {
    return <Empty {...props} />;
  }
  const [frame] = data.series;
  const names = frame.fields.find((field) => field.type === FieldType.string);
  const parts = frame.fields.filter((field) => field.type === FieldType.number);
  const sum = (row) => parts.reduce((total, field) => total + (field.values[row] ?? 0), 0);
  const most = Math.max(...names.values.map((_, row) => sum(row)));
  return (
    <div style={{ width, height, overflow: 'hidden auto' }}>
      {names.values.map((name, row) => (
        <div key={name} style={{ fontSize: 12, marginBottom: 4 }}>
          <div>
            {name}: {formattedValueToString(parts[0].display(sum(row)))}
          </div>
          <div style={{ display: 'flex', height: 14 }}>
            {parts.map((field) => (
              <span
                key={field.name}
                style={{
                  width: `${(100 * (field.values[row] ?? 0)) / most}%`,
                  background: getFieldSeriesColor(field, theme).color,
                }}
              />
            ))}
          </div>
        </div>
      ))}
      <div style={{ fontSize: 12 }}>
        {parts.map((field) => (
          <span key={field.name} style={{ marginRight: 12 }}>
            <span
              style={{
                display: 'inline-block',
                width: 14,
                height: 4,
                marginRight: 4,
                background: getFieldSeriesColor(field, theme).color,
              }}
            />
            {getFieldDisplayName(field, frame)}
          </span>
        ))}
      </div>
    </div>
  );
}

// plugin accepts every field configuration that the dashboards use: a property that is not registered is dropped.
function plugin(component, color, custom) {
  return new PanelPlugin(component).useFieldConfig({
    standardOptions: { color: { defaultValue: { mode: color } } },
    useCustomConfig: (builder) =>
      Object.entries(custom).forEach(([path, defaultValue]) =>
        builder.addCustomEditor({
          id: path,
          path,
          name: path,
          defaultValue,
          editor: () => null,
          override: () => null,
          shouldApply: () => true,
          // As in Grafana, the label of an axis may name variables.
          ...(path === 'axisLabel'
            ? { process: stringOverrideProcessor, settings: { expandTemplateVars: true } }
            : { process: identityOverrideProcessor, settings: {} }),
        }),
      ),
  });
}

const graph = {
  drawStyle: 'line',
  lineInterpolation: 'linear',
  lineWidth: 1,
  lineStyle: { fill: 'solid' },
  lineColor: undefined,
  fillOpacity: 0,
  fillColor: undefined,
  gradientMode: 'none',
  showPoints: 'auto',
  pointSize: 5,
  pointColor: undefined,
  spanNulls: false,
  axisLabel: '',
  axisPlacement: 'auto',
  axisColorMode: 'text',
  scaleDistribution: { type: 'linear' },
  axisCenteredZero: false,
  axisBorderShow: false,
  axisWidth: undefined,
  axisGridShow: undefined,
  axisSoftMin: undefined,
  axisSoftMax: undefined,
  thresholdsStyle: { mode: 'off' },
  stacking: { mode: 'none', group: 'A' },
  barAlignment: 0,
  barWidthFactor: 0.6,
  hideFrom: { tooltip: false, viz: false, legend: false },
  transform: undefined,
};

export const panels = {
  stat: plugin(Stat, 'thresholds', {}),
  bargauge: plugin(Bars, 'thresholds', {}),
  table: plugin(Table, 'thresholds', {
    align: 'auto',
    cellOptions: { type: 'auto' },
    inspect: false,
    filterable: false,
    width: undefined,
    minWidth: undefined,
    hideFrom: undefined,
    wrapText: undefined,
    wrapHeaderText: undefined,
    hidden: undefined,
  }),
  timeseries: plugin(Lines, 'palette-classic', graph),
  xychart: plugin(Curves, 'palette-classic', { ...graph, show: 'points' }),
  'state-timeline': plugin(Timeline, 'thresholds', { lineWidth: 0, fillOpacity: 70, spanNulls: false }),
  barchart: plugin(Stacks, 'palette-classic', { lineWidth: 1, fillOpacity: 80, gradientMode: 'none' }),
};
