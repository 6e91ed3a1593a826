/** Routes of the API that are not operations: its description, its figures. */
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
    summary: 'The OpenAPI 3.1 document of the whole API.',
    path: '/openapi.json',
    produces: 'application/json',
  },

  docs: {
    summary: 'The API in a browser.',
    path: '/docs',
    produces: 'text/html',
  },

  docsFile: {
    summary: 'What the page of `/docs` loads.',
    path: '/docs/{file}',
    params: closed({ file: Type.String() }),
    produces: '*/*',
    errors: ['not_found'],
  },

  metrics: {
    summary: 'Figures in the text format of Prometheus.',
    path: '/metrics',
    produces: 'text/plain',
    tag: 'Diagnostics',
  },
});
