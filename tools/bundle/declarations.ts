/**
 * The operations table of the command line and of `svcd/client`, as plain JSON. A client needs only methods, paths and
 * member names; commands also need the schemas of their options. Building the schemas, and loading the package for
 * that, would take a fifth of a short command's time.
 */
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { Plugin } from 'rolldown';
import type { TObject } from 'typebox';
import { memberOf } from '../../src/foundation/json.ts';
import type { Declaration } from '../../src/operations/operation.ts';

const TABLE = fileURLToPath(new URL('../../src/operations/index.ts', import.meta.url));
/** Folders that need no schemas, and the modules with their data. */
const CLIENTS = ['cli', 'client'].map((name) => ({
  folder: fileURLToPath(new URL(`../../src/surfaces/${name}/`, import.meta.url)),
  data: `\0operations as data for ${name}`,
  hasCommands: name === 'cli',
}));

/** The members of a schema that an option needs. */
const OF_OPTIONS = ['type', 'enum', 'maximum', 'description'];

/** The names of the members, whether other members are allowed, and which members are AIDs. */
function membersOf(schema: TObject, hasCommands: boolean) {
  const members = Object.entries(schema.properties).map(([name, one]) => {
    const [format, ofItems] = [memberOf(one, 'format'), memberOf(one, 'items', 'format')];
    const ofOption = hasCommands ? Object.fromEntries(OF_OPTIONS.map((key) => [key, memberOf(one, key)])) : {};
    return [name, { format, items: ofItems === undefined ? undefined : { format: ofItems }, ...ofOption }];
  });
  return {
    additionalProperties: memberOf(schema, 'additionalProperties'),
    properties: Object.fromEntries(members),
    required: hasCommands ? memberOf(schema, 'required') : undefined,
  };
}

/**
 * A module that exports the parts of the table that a client reads.
 * @param table every declaration by its name
 * @param hasCommands adds the members that options need
 */
export function dataModule(table: Readonly<Record<string, Declaration>>, hasCommands: boolean): string {
  const data = Object.entries(table).map(([key, { name, method, path, params, query, body, output, tool, tag }]) => {
    const [inPath, inQuery, inBody] = [params, query, body].map((part) => membersOf(part, hasCommands));
    const answer = Object.keys(memberOf(output, 'properties') ?? {}).map((member) => [member, {}]);
    const parts = {
      ...{ params: inPath, query: inQuery, body: inBody },
      output: hasCommands ? { properties: Object.fromEntries(answer) } : undefined,
    };
    return [key, { name, method, path, ...parts, tool: tool === undefined ? undefined : { name: tool.name }, tag }];
  });
  return `export const operations = JSON.parse(${JSON.stringify(JSON.stringify(Object.fromEntries(data)))});\n`;
}

export const declarationsAsData: Plugin = {
  name: 'declarations-as-data',
  async resolveId(name, importer) {
    const client = CLIENTS.find(({ folder }) => importer?.startsWith(folder));
    if (!name.endsWith('/operations/index.ts') || client === undefined) return null;
    const found = await this.resolve(name, importer, { skipSelf: true });
    return found?.id === TABLE ? client.data : null;
  },
  async load(id) {
    const client = CLIENTS.find(({ data }) => data === id);
    if (client === undefined) return null;
    const { operations }: { operations: Readonly<Record<string, Declaration>> } = await import(
      pathToFileURL(TABLE).href
    );
    return dataModule(operations, client.hasCommands);
  },
};
