/** Routes that are not operations: the API description and the metrics. */
import { Type } from 'typebox';
import { declareStreams } from './declare.ts';
import { closed, NONE } from './schemas.ts';

const PAGES = {
  methods: ['GET', 'HEAD'],
  params: NONE,
  query: NONE,
  permission: 'read',
  errors: [],
  tag: 'Documentation',
} as const;

export const pageStreams = declareStreams(PAGES, {
  openApi: {
    summary: 'The OpenAPI 3.1 document of the API.',
    path: '/openapi.json',
    produces: 'application/json',
  },

  docs: {
    summary: 'The API reference in the browser.',
    path: '/docs',
    produces: 'text/html',
  },

  docsFile: {
    summary: 'Files of the page `/docs`.',
    path: '/docs/{file}',
    params: closed({ file: Type.String() }),
    produces: '*/*',
    errors: ['not_found'],
  },

  metrics: {
    summary: 'Metrics in the Prometheus text format.',
    path: '/metrics',
    produces: 'text/plain',
    tag: 'Diagnostics',
  },
});
