/** Routes of the API that are not operations: its description, its figures. */
import { Type } from 'typebox';
import { closed, NONE } from './schemas.ts';
import type { StreamDeclaration } from './stream.ts';

const PAGE = {
  methods: ['GET', 'HEAD'],
  params: NONE,
  query: NONE,
  permission: 'read',
  errors: [],
  tag: 'Documentation',
} as const;

export const openApi: StreamDeclaration = {
  ...PAGE,
  name: 'openApi',
  summary: 'The OpenAPI 3.1 document of the whole API.',
  path: '/openapi.json',
  produces: 'application/json',
};

export const docs: StreamDeclaration = {
  ...PAGE,
  name: 'docs',
  summary: 'The API in a browser.',
  path: '/docs',
  produces: 'text/html',
};

export const docsFile: StreamDeclaration = {
  ...PAGE,
  name: 'docsFile',
  summary: 'What the page of `/docs` loads.',
  path: '/docs/{file}',
  params: closed({ file: Type.String() }),
  produces: '*/*',
  errors: ['not_found'],
};

export const metrics: StreamDeclaration = {
  ...PAGE,
  name: 'metrics',
  summary: 'Figures in the text format of Prometheus.',
  path: '/metrics',
  produces: 'text/plain',
  tag: 'Diagnostics',
};
