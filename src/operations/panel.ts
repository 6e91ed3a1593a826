/** The web panel: the page and its files. */
import { Type } from 'typebox';
import { declareStreams } from './declare.ts';
import { closed } from './schemas.ts';

/** Longest name of a file of the panel, characters. */
const MAX_PANEL_FILE_NAME_CHARS = 128;

const COMMON = { tag: 'Panel' };

export const panelStreams = declareStreams(
  {
    ...COMMON,
    methods: ['GET', 'HEAD'],
    permission: 'open',
    errors: [],
  } as const,
  {
    panel: {
      summary: 'The web panel. It holds no data.',
      path: '/',
      params: closed({}),
      // A link may carry what it likes: nothing looks at it.
      query: Type.Object({}),
      produces: 'text/html',
    },

    panelFile: {
      summary: 'What the page of the panel loads.',
      path: '/panel/{file}',
      params: closed({ file: Type.String({ maxLength: MAX_PANEL_FILE_NAME_CHARS }) }),
      query: closed({}),
      produces: '*/*',
      errors: ['not_found'],
    },
  },
);
