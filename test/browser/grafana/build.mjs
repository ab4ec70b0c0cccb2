// Bundles the page into out/, with one style sheet and no request to any other host.
import { build } from 'esbuild';

await build({
  entryPoints: ['src/main.jsx'],
  bundle: true,
  outdir: process.argv[2] ?? 'out',
  format: 'esm',
  splitting: true,
  minify: true,
  target: 'es2022',
  jsx: 'automatic',
  define: { 'process.env.NODE_ENV': '"production"', global: 'globalThis' },
  loader: { '.svg': 'dataurl', '.woff2': 'dataurl', '.png': 'dataurl', '.ttf': 'dataurl' },
  // Grafana has two versions of the router, and this compatibility package between them; one version is enough here.
  alias: { 'react-router-dom-v5-compat': 'react-router-dom' },
  logLevel: 'warning',
});
