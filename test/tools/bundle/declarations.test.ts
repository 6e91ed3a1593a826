import assert from 'node:assert/strict';
import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { rolldown } from 'rolldown';
import { memberOf } from '../../../src/foundation/json.ts';
import { operations } from '../../../src/operations/index.ts';
import { type Declaration, isOpen } from '../../../src/operations/operation.ts';
import { buildProgram as sourceProgram } from '../../../src/surfaces/cli/program.ts';
import { programOptions, programOutput } from '../../../tools/bundle/bundle.ts';
import { dataModule } from '../../../tools/bundle/declarations.ts';
import { clientProgram, describeCommand } from '../../../tools/command-tree.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';

const MEMBER = [['format'], ['items', 'format']];
/** The members of a schema that an option needs. */
const OPTION = [['type'], ['enum'], ['maximum'], ['description']];

for (const hasCommands of [true, false])
  test(`the table of a bundled client has everything that it reads, with commands: ${hasCommands}`, async () => {
    const url = `data:text/javascript,${encodeURIComponent(dataModule(operations, hasCommands))}`;
    const { operations: data }: { operations: Record<string, Declaration> } = await import(url);
    const table: Readonly<Record<string, Declaration>> = operations;
    assert.deepEqual(Object.keys(data), Object.keys(table));
    for (const [name, one] of Object.entries(table)) {
      const other = data[name];
      assert.ok(other);
      for (const key of ['name', 'method', 'path', 'tag'] as const) assert.equal(other[key], one[key]);
      assert.equal(other.tool?.name, one.tool?.name);
      if (hasCommands)
        assert.deepEqual(
          Object.keys(memberOf(other.output, 'properties') ?? {}),
          Object.keys(memberOf(one.output, 'properties') ?? {}),
        );
      for (const part of ['params', 'query', 'body'] as const) {
        assert.deepEqual(Object.keys(other[part].properties), Object.keys(one[part].properties), `${name}: ${part}`);
        if (hasCommands) assert.deepEqual(other[part].required, one[part].required, `${name}: ${part}`);
        for (const [key, schema] of Object.entries(one[part].properties))
          for (const path of [...MEMBER, ...(hasCommands ? OPTION : [])])
            assert.deepEqual(
              memberOf(other[part].properties[key], ...path),
              memberOf(schema, ...path),
              `${name}: ${key}`,
            );
        assert.equal(isOpen(other[part]), isOpen(one[part]), `${name}: ${part}`);
      }
    }
  });

test('the bundled commands have the arguments, options and texts of the sources', async (t) => {
  const root = temporaryDirectory(t);
  // As in a package, programs are two folders below it.
  copyFileSync('package.json', join(root, 'package.json'));
  const dir = join(root, 'dist', 'cli');
  const bundle = await rolldown(programOptions({ program: 'src/surfaces/cli/program.ts' }, [], []));
  await bundle.write({ ...programOutput, dir, entryFileNames: '[name].mjs', chunkFileNames: '[name]-[hash].mjs' });
  const { buildProgram }: { buildProgram: typeof sourceProgram } = await import(
    pathToFileURL(join(dir, 'program.mjs')).href
  );
  assert.deepEqual(
    describeCommand(await clientProgram(buildProgram), 'svc'),
    describeCommand(await clientProgram(), 'svc'),
  );
});
