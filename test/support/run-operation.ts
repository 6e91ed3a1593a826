/** Runs operations like a surface: the parts of a request in, JSON that matches the schema out. */
import { Compile } from 'typebox/compile';
import { compileInput } from '../../src/operations/input.ts';
import { bind, type CallContext, type Declaration, type Handlers } from '../../src/operations/operation.ts';

export interface RequestParts {
  readonly params?: object;
  readonly query?: object;
  readonly body?: unknown;
}

/** A local caller without a token. */
export function localContext(more: Partial<CallContext> = {}): CallContext {
  return {
    origin: 'local',
    signal: new AbortController().signal,
    requireToken: () => {},
    setStatus: () => {},
    ...more,
  };
}

/** Runs an operation of a table by its name. The result is what a client would read. */
export function operationRunner<T extends { readonly [K in keyof T]: Declaration }>(
  declarations: T,
  handlers: Handlers<NoInfer<T>>,
) {
  const bound = bind(declarations, handlers);
  return async (
    name: keyof T & string,
    { params = {}, query = {}, body = {} }: RequestParts = {},
    more: Partial<CallContext> = {},
  ): Promise<unknown> => {
    const operation = bound.find(({ declaration }) => declaration === declarations[name]);
    if (operation === undefined) throw new Error(`no operation ${name}`);
    const { declaration } = operation;
    const input = compileInput(declaration)({ params: { ...params }, query: { ...query }, body });
    const output: unknown = JSON.parse(JSON.stringify(await operation.run(input, localContext(more))));
    const check = Compile(declaration.output);
    if (!check.Check(output)) throw new Error(`${name} broke its schema: ${JSON.stringify(check.Errors(output))}`);
    return output;
  };
}
