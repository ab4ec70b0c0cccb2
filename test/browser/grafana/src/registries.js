// Grafana's server side registers these in its own front end, whose code is on no registry. The functions are those of @grafana/data.
import {
  FieldColorModeId,
  booleanOverrideProcessor,
  dataLinksOverrideProcessor,
  displayNameOverrideProcessor,
  fieldColorModeRegistry,
  identityOverrideProcessor,
  numberOverrideProcessor,
  standardEditorsRegistry,
  standardFieldConfigEditorRegistry,
  standardTransformers,
  standardTransformersRegistry,
  stringOverrideProcessor,
  thresholdsOverrideProcessor,
  unitOverrideProcessor,
  valueMappingsOverrideProcessor,
} from '@grafana/data';
import { of, map } from 'rxjs';

const fieldConfigs = {
  unit: unitOverrideProcessor,
  min: numberOverrideProcessor,
  max: numberOverrideProcessor,
  decimals: numberOverrideProcessor,
  displayName: displayNameOverrideProcessor,
  noValue: stringOverrideProcessor,
  color: identityOverrideProcessor,
  mappings: valueMappingsOverrideProcessor,
  thresholds: thresholdsOverrideProcessor,
  links: dataLinksOverrideProcessor,
  filterable: booleanOverrideProcessor,
};

// partitionByValues splits a frame by the values of fields, as Grafana's transformation of this name does with naming.asLabels.
const partitionByValues = {
  id: 'partitionByValues',
  name: 'Partition by values',
  operator: (options) => (source) =>
    source.pipe(
      map((frames) =>
        frames.flatMap((frame) => {
          const by = frame.fields.filter((field) => options.fields.includes(field.name));
          const parts = new Map();
          for (let row = 0; row < frame.length; row++) {
            const key = JSON.stringify(by.map((field) => field.values[row]));
            parts.set(key, [...(parts.get(key) ?? []), row]);
          }
          return [...parts.values()].map((rows) => {
            const labels = Object.fromEntries(by.map((field) => [field.name, String(field.values[rows[0]])]));
            const kept = options.keepFields ? frame.fields : frame.fields.filter((field) => !by.includes(field));
            return {
              ...frame,
              length: rows.length,
              fields: kept.map((field) => ({
                ...field,
                state: undefined,
                labels: { ...field.labels, ...labels },
                values: rows.map((row) => field.values[row]),
              })),
            };
          });
        }),
      ),
    ),
};

export function registerAll() {
  standardEditorsRegistry.setInit(() => []);
  standardFieldConfigEditorRegistry.setInit(() =>
    Object.entries(fieldConfigs).map(([id, process]) => ({
      id,
      path: id,
      name: id,
      description: '',
      editor: () => null,
      override: () => null,
      process,
      shouldApply: () => true,
      settings: {},
      ...(id === 'color' && { defaultValue: { mode: FieldColorModeId.Thresholds }, settings: {} }),
    })),
  );
  standardTransformersRegistry.setInit(() =>
    [...new Set(Object.values(standardTransformers)), partitionByValues].map((transformation) => ({
      id: transformation.id,
      name: transformation.name,
      transformation: () => Promise.resolve(transformation),
      editor: () => null,
      imageDark: '',
      imageLight: '',
    })),
  );
}
