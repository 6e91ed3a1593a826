/** Definitions of tools and skills, as the MCP hub receives them from servers and cards. */
import { toolsOfCard } from '../../../src/capabilities/hub/a2a-skills.ts';
import { defineTool, indexTexts, parameterSummary, readDefinition } from '../../../src/capabilities/hub/definition.ts';
import { MAX_HUB_DEFINITION_BYTES } from '../../../src/foundation/domain/hub.ts';
import { isObject } from '../../../src/foundation/json.ts';
import { testAgent } from '../engine/agents.ts';
import { bytesOf, decoder, violation } from '../engine/properties.ts';
import type { FuzzTarget } from '../engine/target.ts';

const { aid } = testAgent(1);
const WORDS = [
  '"name":',
  '"title":',
  '"inputSchema":',
  '"properties":',
  '"required":',
  '"annotations":',
  '{',
  '[',
  '__proto__',
];
const TOOL = {
  name: 'create_issue',
  title: 'Create',
  description: 'Creates an issue.',
  inputSchema: { type: 'object', properties: { title: { type: 'string', description: 'x' } }, required: ['title'] },
  outputSchema: { type: 'object' },
  annotations: { readOnlyHint: false },
};
const CARD = { skills: [{ id: 'a', name: 'A', description: 'x', tags: ['t'], examples: ['e'] }] };

function parsed(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(bytes).toString('utf8'));
  } catch {
    return null;
  }
}

const tools = decoder({
  name: 'hub-tool',
  inputs: 4000,
  edit: () => null,
  words: WORDS,
  seeds: () => bytesOf(JSON.stringify(TOOL)),
  decode: (bytes) => defineTool(aid, 'mcp', parsed(bytes)),
  check: ({ name, json, hash }) => {
    if (!/^[\w.:/-]{1,128}$/.test(name)) throw violation('a name with other characters', name);
    if (Buffer.byteLength(json) > MAX_HUB_DEFINITION_BYTES) throw violation('a long definition', json);
    const definition = readDefinition(json);
    if (defineTool(aid, 'mcp', definition)?.hash !== hash) throw violation('the hash of a definition changes', json);
    indexTexts(definition);
    parameterSummary(definition);
  },
});

const skills = decoder({
  name: 'hub-skills',
  inputs: 2000,
  edit: () => null,
  words: ['"skills":', '"id":', '"tags":', '"examples":', '[', '{'],
  seeds: () => bytesOf(JSON.stringify(CARD)),
  decode: (bytes) => {
    const card = parsed(bytes);
    return isObject(card) ? toolsOfCard(card).map((one) => defineTool(aid, 'a2a', one)) : null;
  },
});

export const hubTargets: readonly FuzzTarget[] = [tools, skills];
