/**
 * The operations table of the command line and of `svcd/client`, as plain JSON. A client needs only methods, paths and
 * member names. Building the schemas, and loading the package for that, would take a fifth of a short command's time.
 */
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { Plugin } from 'rolldown';
import type { TObject } from 'typebox';
import { memberOf } from '../../src/foundation/json.ts';
import type { Declaration } from '../../src/operations/operation.ts';

const TABLE = fileURLToPath(new URL('../../src/operations/index.ts', import.meta.url));
/** Folders that need no schemas. */
const CLIENTS = ['cli', 'client'].map((name) => fileURLToPath(new URL(`../../src/surfaces/${name}/`, import.meta.url)));
const DATA = '\0operations as data';

/** The names of the members, whether other members are allowed, and which members are AIDs. */
function membersOf(schema: TObject) {
  const members = Object.entries(schema.properties).map(([name, one]) => {
    const [format, ofItems] = [memberOf(one, 'format'), memberOf(one, 'items', 'format')];
    return [name, { format, items: ofItems === undefined ? undefined : { format: ofItems } }];
  });
  return {
    additionalProperties: memberOf(schema, 'additionalProperties'),
    properties: Object.fromEntries(members),
  };
}

/** A module that exports the parts of the table that commands read. @param table every declaration by its name */
export function dataModule(table: Readonly<Record<string, Declaration>>): string {
  const data = Object.entries(table).map(([key, { name, method, path, params, query, body, tool, tag }]) => {
    const parts = { params: membersOf(params), query: membersOf(query), body: membersOf(body) };
    return [key, { name, method, path, ...parts, tool: tool === undefined ? undefined : { name: tool.name }, tag }];
  });
  return `export const operations = JSON.parse(${JSON.stringify(JSON.stringify(Object.fromEntries(data)))});\n`;
}

export const declarationsAsData: Plugin = {
  name: 'declarations-as-data',
  async resolveId(name, importer) {
    if (!name.endsWith('/operations/index.ts') || !CLIENTS.some((folder) => importer?.startsWith(folder))) return null;
    const found = await this.resolve(name, importer, { skipSelf: true });
    return found?.id === TABLE ? DATA : null;
  },
  async load(id) {
    if (id !== DATA) return null;
    const { operations }: { operations: Readonly<Record<string, Declaration>> } = await import(
      pathToFileURL(TABLE).href
    );
    return dataModule(operations);
  },
};
