/** Generates the possible faults of a source text. */
import { type Argument, type Expression, type Function as FunctionNode, parseSync, Visitor } from 'oxc-parser';

/** One fault: a part of a file and its replacement. */
export interface Mutant {
  readonly file: string;
  /** From 1. */
  readonly line: number;
  readonly kind: Kind;
  /** Offsets of the part, in UTF-16 units. */
  readonly start: number;
  readonly end: number;
  readonly replacement: string;
  /** The part and its replacement with enough around them to be read. */
  readonly before: string;
  readonly after: string;
}

type Kind = 'operator' | 'condition' | 'call' | 'return' | 'boolean' | 'limit';
type Span = Readonly<{ start: number; end: number }>;

const TURNED = new Map([
  ['===', '!=='],
  ['!==', '==='],
  ['<', '<='],
  ['<=', '<'],
  ['>', '>='],
  ['>=', '>'],
  ['+', '-'],
  ['-', '+'],
  ['&&', '||'],
  ['||', '&&'],
  ['+=', '-='],
  ['-=', '+='],
]);
const COMPARISON = /^(?:[!=]==|[<>]=?)$/;
/** Calls without an effect that unit tests observe: log lines, and timers that do not keep the process running. */
const UNNOTICEABLE_CALL = /\blog\??\.(?:trace|debug|info|warn|error|child)$|\.unref$|^super$/;
const ERROR_CLASS = /Error$/;
const CONSTANT_NAME = /^[A-Z][A-Z0-9_]*$/;
const TIMING_NAME = /(?:^|_)(?:NS|MS|S|DAYS?|PER_\w+|INTERVAL|TIMEOUT)$/;
/** A number, or a calculation with numbers and named constants. */
const NUMERIC = /^(?=.*\d)(?:\d[\d_.a-f]*|0x[\da-f]+|[A-Z][A-Z0-9_]*|[\s*+()-])+$/;
/** Maximum length of a shown part. */
const MAX_SHOWN = 70;

/** Return values of a function that does nothing, by its declared type. Undefined without one. */
function emptyReturns(type: string): string[] {
  const plain = type.replace(/^:\s*/, '').replace(/^Promise<(.*)>$/s, '$1');
  if (plain === 'boolean' || / is /.test(plain)) return ['true', 'false'];
  if (plain === 'string') return ["''"];
  if (plain === 'number') return ['0'];
  if (plain.endsWith('[]')) return ['[]'];
  return ['undefined'];
}

function isText({ type, value }: { type: string; value?: unknown }): boolean {
  return type === 'TemplateLiteral' || typeof value === 'string';
}

/** Every mutant of one file, in the order of the text. @throws Error if the text is not valid TypeScript */
export function mutantsOf(file: string, source: string): Mutant[] {
  const parsed = parseSync(file, source, { lang: 'ts' });
  if (parsed.errors.length > 0) throw new Error(`${file}: ${parsed.errors[0]?.message}`);
  const found: Mutant[] = [];
  /** Parts without mutants: types, log lines, error texts, time constants. */
  const excluded: Span[] = [];
  /** Declared return types of the functions around the current node. */
  const returnTypes: string[] = [];
  const text = ({ start, end }: Span) => source.slice(start, end);

  function plant(kind: Kind, part: Span, replacement: string, around: Span = part): void {
    if (text(part) === replacement) return;
    const shown = (line: string) => {
      const short = line.replace(/\s+/g, ' ');
      return short.length > MAX_SHOWN ? `${short.slice(0, MAX_SHOWN)} …` : short;
    };
    const after = source.slice(around.start, part.start) + replacement + source.slice(part.end, around.end);
    found.push({
      file,
      kind,
      replacement,
      line: source.slice(0, part.start).split('\n').length,
      start: part.start,
      end: part.end,
      before: shown(text(around)),
      after: shown(after),
    });
  }

  function operator(node: Span & { left: Span; right: Span; operator: string }): void {
    const turned = TURNED.get(node.operator);
    if (turned === undefined) return;
    const start = node.left.end + source.slice(node.left.end, node.right.start).indexOf(node.operator);
    plant('operator', { start, end: start + node.operator.length }, turned, node);
  }

  function condition({ test }: { test: Span }): void {
    plant('condition', test, 'true');
    plant('condition', test, 'false');
  }

  function returned(argument: Expression, part: Span, before: string): void {
    // The result would be the same, or the kind "boolean" covers it.
    if (argument.type === 'Literal' && (argument.value === null || typeof argument.value === 'boolean')) return;
    for (const value of emptyReturns(returnTypes.at(-1) ?? '')) {
      if (text(argument) !== value) plant('return', part, `${before}${value}`);
    }
  }

  function enter(node: FunctionNode): void {
    returnTypes.push(node.returnType ? text(node.returnType) : '');
  }
  const leave = () => {
    returnTypes.pop();
  };

  const limitIn = (operand: Argument, around: Span) => {
    if (operand.type === 'Literal' && typeof operand.value === 'number')
      plant('limit', operand, String(operand.value + 1), around);
  };

  new Visitor({
    TSLiteralType: (node) => {
      excluded.push(node);
    },
    NewExpression: (node) => {
      if (ERROR_CLASS.test(text(node.callee))) excluded.push(node);
    },
    CallExpression: (node) => {
      if (UNNOTICEABLE_CALL.test(text(node.callee))) excluded.push(node);
    },
    FunctionDeclaration: enter,
    'FunctionDeclaration:exit': leave,
    FunctionExpression: enter,
    'FunctionExpression:exit': leave,
    ArrowFunctionExpression: (node) => {
      returnTypes.push(node.returnType ? text(node.returnType) : '');
      if (node.returnType && node.body.type !== 'BlockStatement') returned(node.body, node.body, '');
    },
    'ArrowFunctionExpression:exit': leave,
    BinaryExpression: (node) => {
      if (!isText(node.left) && !isText(node.right)) operator(node);
      if (COMPARISON.test(node.operator)) {
        limitIn(node.left, node);
        limitIn(node.right, node);
      }
    },
    LogicalExpression: operator,
    AssignmentExpression: operator,
    IfStatement: condition,
    ConditionalExpression: condition,
    ExpressionStatement: (node) => {
      const inner = 'argument' in node.expression ? node.expression.argument : node.expression;
      if (inner?.type === 'CallExpression' && !UNNOTICEABLE_CALL.test(text(inner.callee))) plant('call', node, ';');
    },
    ReturnStatement: (node) => {
      if (node.argument !== null) returned(node.argument, node, 'return ');
    },
    Literal: (node) => {
      if (typeof node.value === 'boolean') plant('boolean', node, String(!node.value));
    },
    VariableDeclarator: (node) => {
      if (node.id.type !== 'Identifier' || node.init === null) return;
      const { name } = node.id;
      if (!CONSTANT_NAME.test(name) || !NUMERIC.test(text(node.init))) return;
      if (TIMING_NAME.test(name)) excluded.push(node);
      else plant('limit', node.init, `${text(node.init)} + 1`, node);
    },
  }).visit(parsed.program);

  const kept = found.filter(({ start, end }) => !excluded.some((part) => part.start <= start && end <= part.end));
  return kept.sort((a, b) => a.start - b.start || a.end - b.end);
}

/** The text with the fault in it. */
export function applyMutant(source: string, { start, end, replacement }: Mutant): string {
  return source.slice(0, start) + replacement + source.slice(end);
}
