/**
 * Writes the types of `svcd/client`: declarations of the client's files, and the operations as TypeScript, so that
 * users need none of the packages behind the schemas.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isolatedDeclarationSync } from 'rolldown/experimental';
import type { TObject, TSchema } from 'typebox';
import { ERRORS } from '../../src/foundation/errors.ts';
import { memberOf } from '../../src/foundation/json.ts';
import { operations } from '../../src/operations/index.ts';
import { bodyInputKey, type Declaration } from '../../src/operations/operation.ts';

const SOURCES = 'src/surfaces/client';
/** The files whose types programs meet. */
const FILES = ['node', 'browser', 'daemon', 'inbox', 'place', 'remote-agent', 'group', 'serve'];

const PLAIN: Readonly<Record<string, string>> = {
  string: 'string',
  integer: 'number',
  number: 'number',
  boolean: 'boolean',
  null: 'null',
};

const NAME = /^[A-Za-z_$][\w$]*$/;

function literals(values: readonly unknown[]): string {
  return values.map((value) => JSON.stringify(value)).join(' | ');
}

function asList(value: unknown): readonly unknown[] | null {
  return Array.isArray(value) ? value : null;
}

/** The TypeScript type of a schema. @throws Error for a kind of schema that no operation uses yet */
export function typeText(schema: unknown): string {
  const [constant, options] = [memberOf(schema, 'const'), asList(memberOf(schema, 'enum'))];
  if (constant !== undefined) return literals([constant]);
  if (options !== null) return literals(options);
  const union = asList(memberOf(schema, 'anyOf'));
  if (union !== null) return union.map((one) => `(${typeText(one)})`).join(' | ');
  const type = memberOf(schema, 'type');
  if (type === 'array') return `readonly (${typeText(memberOf(schema, 'items'))})[]`;
  if (type === 'object') return objectText(schema);
  if (type === undefined) return 'unknown';
  const plain = typeof type === 'string' ? PLAIN[type] : undefined;
  if (plain === undefined) throw new Error(`no type is known for ${JSON.stringify(schema)}`);
  return plain;
}

function objectText(schema: unknown): string {
  const properties = Object.entries(Object(memberOf(schema, 'properties')));
  const required = asList(memberOf(schema, 'required')) ?? [];
  const values = Object.values(Object(memberOf(schema, 'patternProperties')));
  const open = values.length > 0 ? values.map(typeText).join(' | ') : 'unknown';
  if (properties.length === 0) return `{ readonly [name: string]: ${open} }`;
  const members = properties.map(([name, one]) => memberText(name, one, required.includes(name)));
  return `{ ${members.join('; ')} }`;
}

function memberText(name: string, schema: unknown, isRequired: boolean): string {
  const key = NAME.test(name) ? name : JSON.stringify(name);
  return `readonly ${key}${isRequired ? '' : '?'}: ${typeText(schema)}${isRequired ? '' : ' | undefined'}`;
}

/** The input of a method: members of path, query and body in one object. */
function inputText({ params, query, body }: Declaration): { readonly text: string; readonly isNeeded: boolean } {
  const membersOf = (part: TObject): [string, TSchema, boolean][] =>
    Object.entries(part.properties).map(([name, one]) => [
      part === body ? bodyInputKey(name, params) : name,
      one,
      (part.required ?? []).includes(name),
    ]);
  const members = [params, query, body].flatMap(membersOf);
  return {
    text: `{ ${members.map(([name, one, isRequired]) => memberText(name, one, isRequired)).join('; ')} }`,
    isNeeded: members.some(([, , isRequired]) => isRequired),
  };
}

function methodText(declaration: Declaration): string {
  const { name, summary, output } = declaration;
  const { text, isNeeded } = inputText(declaration);
  return `  /** ${summary} */\n  ${name}(input${isNeeded ? '' : '?'}: ${text}, options?: CallOptions): Promise<${typeText(output)}>;`;
}

/** The text of `api.d.ts`. */
export function apiText(table: Readonly<Record<string, Declaration>>): string {
  return `/** Every operation of the daemon. Its methods throw \`SvcError\`. */
export interface CallOptions {
  /** Gives the call up: it fails with \`cancelled\`. */
  readonly signal?: AbortSignal;
  readonly timeoutMs?: number;
}
export interface SvcApi {
${Object.values(table).map(methodText).join('\n')}
}
`;
}

/** The text of `errors.d.ts`. */
function errorsText(): string {
  return `/** A stable error code of the API. */
export type ErrorCode = ${literals(Object.keys(ERRORS))};
/** An error: its code, the HTTP status for that code, and a message for people. */
export declare class SvcError extends Error {
  readonly code: ErrorCode;
  readonly status: number;
  readonly details: Readonly<Record<string, unknown>> | undefined;
}
`;
}

/** Writes the types into a directory. @throws Error where a file does not say all its types */
export function writeClientTypes(directory: string): void {
  mkdirSync(directory, { recursive: true });
  for (const name of FILES) {
    const file = join(SOURCES, `${name}.ts`);
    const { code, errors } = isolatedDeclarationSync(file, readFileSync(file, 'utf8'));
    if (errors.length > 0) throw new Error(`${file}: ${errors.map(({ message }) => message).join('; ')}`);
    const text = code.replaceAll('../../foundation/', './').replaceAll(/(from ["']\.\/[\w-]+)\.ts/g, '$1.js');
    writeFileSync(join(directory, `${name}.d.ts`), text);
  }
  writeFileSync(join(directory, 'api.d.ts'), apiText(operations));
  writeFileSync(join(directory, 'errors.d.ts'), errorsText());
}
