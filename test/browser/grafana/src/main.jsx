// Renders one dashboard: ?dashboard=run&theme=dark, with variables as var-NAME and times as from and to, as in Grafana's addresses.
import { EventBusSrv, LoadingState, ThemeContext, createTheme } from '@grafana/data';
import {
  LocationServiceProvider,
  config,
  locationService,
  setAppEvents,
  setBackendSrv,
  setDataSourceSrv,
  setPluginImportUtils,
  setRunRequest,
  setTemplateSrv,
} from '@grafana/runtime';
import {
  ConstantVariable,
  DataSourceVariable,
  EmbeddedScene,
  QueryVariable,
  SceneControlsSpacer,
  SceneDataTransformer,
  SceneGridItem,
  SceneGridLayout,
  SceneGridRow,
  SceneQueryRunner,
  SceneTimePicker,
  SceneTimeRange,
  SceneVariableSet,
  VariableValueSelectors,
  VizPanel,
  sceneGraph,
  sceneUtils,
} from '@grafana/scenes';
import { GlobalStyles } from '@grafana/ui';
import { createRoot } from 'react-dom/client';
import { Router } from 'react-router-dom';
import { from, map, of, catchError, startWith } from 'rxjs';

import { panels } from './panels.jsx';
import { registerAll } from './registries.js';
import { settings, source } from './source.js';

const address = new URLSearchParams(window.location.search);
const theme = createTheme({ colors: { mode: address.get('theme') ?? 'dark' } });
Object.assign(config, {
  theme2: theme,
  featureToggles: {},
  appSubUrl: '',
  bootData: { user: { timezone: 'utc', locale: 'en-US' }, settings: {} },
});

registerAll();
setAppEvents(new EventBusSrv());
setBackendSrv({ get: () => Promise.resolve({}), post: () => Promise.resolve({}), fetch: () => of({}) });
setTemplateSrv({
  replace: (text) => text ?? '',
  getVariables: () => [],
  containsTemplate: () => false,
  updateTimeRange: () => undefined,
});
setDataSourceSrv({
  get: () => Promise.resolve(source),
  getList: () => [settings],
  getInstanceSettings: () => settings,
  reload: () => Promise.resolve(),
});
setRunRequest((datasource, request) =>
  from(datasource.query(request)).pipe(
    map((response) => ({ state: LoadingState.Done, series: response.data, timeRange: request.range, request })),
    catchError((error) => of({ state: LoadingState.Error, series: [], timeRange: request.range, request, error, errors: [error] })),
    startWith({ state: LoadingState.Loading, series: [], timeRange: request.range, request }),
  ),
);
setPluginImportUtils({
  importPanelPlugin: (id) => Promise.reject(new Error(`no panel ${id}`)),
  getPanelPluginFromCache: () => undefined,
});
for (const [pluginId, plugin] of Object.entries(panels)) {
  sceneUtils.registerRuntimePanelPlugin({ pluginId, plugin });
}

function variableOf(model) {
  const value = address.get(`var-${model.name}`);
  const common = { name: model.name, label: model.label, hide: model.hide, description: model.description };
  switch (model.type) {
    case 'datasource':
      return new DataSourceVariable({ ...common, pluginId: model.query });
    case 'query':
      return new QueryVariable({
        ...common,
        datasource: model.datasource,
        query: model.query,
        refresh: model.refresh,
        regex: model.regex,
        sort: model.sort,
        isMulti: model.multi,
        includeAll: model.includeAll,
        allValue: model.allValue,
        ...(value ? { value, text: value } : { value: model.current?.value ?? '', text: model.current?.text ?? '' }),
      });
    case 'constant':
      return new ConstantVariable({ ...common, value: value ?? model.query });
    default:
      throw new Error(`unknown type of variable ${model.type}`);
  }
}

function panelOf(model, y) {
  const runner = new SceneQueryRunner({ datasource: model.datasource, queries: model.targets });
  return new SceneGridItem({
    x: model.gridPos.x,
    y: y ?? model.gridPos.y,
    width: model.gridPos.w,
    height: model.gridPos.h,
    isDraggable: false,
    isResizable: false,
    body: new VizPanel({
      key: `panel-${model.id}`,
      title: model.title,
      description: model.description,
      pluginId: model.type,
      options: model.options,
      fieldConfig: model.fieldConfig,
      $data: model.transformations?.length ? new SceneDataTransformer({ $data: runner, transformations: model.transformations }) : runner,
    }),
  });
}

function layoutOf(dashboard) {
  const children = [];
  for (const model of dashboard.panels) {
    if (model.type === 'row') {
      children.push(new SceneGridRow({ y: model.gridPos.y, title: model.title, isCollapsible: false, isCollapsed: false, children: [] }));
    } else if (children.at(-1) instanceof SceneGridRow) {
      children.at(-1).state.children.push(panelOf(model));
    } else {
      children.push(panelOf(model));
    }
  }
  return new SceneGridLayout({ isDraggable: false, isResizable: false, children });
}

const dashboard = await (await fetch(`/dashboards/${address.get('dashboard')}`)).json();
const scene = new EmbeddedScene({
  $timeRange: new SceneTimeRange({
    from: address.get('from') ?? dashboard.time.from,
    to: address.get('to') ?? dashboard.time.to,
    timeZone: 'utc',
  }),
  $variables: new SceneVariableSet({ variables: dashboard.templating.list.map(variableOf) }),
  controls: [new VariableValueSelectors({}), new SceneControlsSpacer(), new SceneTimePicker({})],
  body: layoutOf(dashboard),
});

// report says of every panel whether its queries are done, how many rows it has, and its text. Tests read it.
window.report = () =>
  sceneGraph
    .findAllObjects(scene, (one) => one instanceof VizPanel)
    .map((panel) => {
      const data = sceneGraph.getData(panel).state.data;
      const element = document.querySelector(`[data-viz-panel-key="${panel.state.key}"]`);
      return {
        title: sceneGraph.interpolate(panel, panel.state.title),
        type: panel.state.pluginId,
        state: data?.state ?? 'NotStarted',
        error: data?.errors?.map((error) => error.message).join('; ') ?? '',
        rows: (data?.series ?? []).reduce((sum, frame) => sum + frame.length, 0),
        series: (data?.series ?? []).length,
        noValue: panel.state.fieldConfig.defaults.noValue ?? '',
        text: element?.innerText ?? '',
      };
    });
window.scene = scene;

createRoot(document.getElementById('root')).render(
  <ThemeContext.Provider value={theme}>
    <GlobalStyles />
    <LocationServiceProvider service={locationService}>
      <Router location={locationService.getLocation()} navigator={locationService.getHistory()}>
        <div style={{ background: theme.colors.background.canvas, padding: 16 }}>
          <scene.Component model={scene} />
        </div>
      </Router>
    </LocationServiceProvider>
  </ThemeContext.Provider>,
);
