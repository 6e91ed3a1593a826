/** Recognizes mutants that change nothing, which no test can notice. */
import { minifySync, parseSync, transformSync, Visitor } from 'rolldown/utils';
import { applyMutant, type Mutant } from './generate.ts';

type Span = Readonly<{ start: number; end: number }>;

/** The source without types, minified, so that constant conditions and unused code disappear; null if it is invalid. */
function minified(file: string, source: string): string | null {
  const { code, errors } = transformSync(file.replace(/.*\//, ''), source, { lang: 'ts' });
  if (errors.length > 0) return null;
  const result = minifySync('module.js', code, { module: true, mangle: false });
  return result.errors.length > 0 ? null : result.code;
}

/**
 * Spans of comparisons whose operands give the same result if they are equal, such as `a < b ? a : b` and
 * `a < b ? -1 : 1` in a comparison of different keys.
 */
function indifferentComparisons(file: string, source: string): Span[] {
  const spans: Span[] = [];
  const text = ({ start, end }: Span): string => source.slice(start, end);
  new Visitor({
    ConditionalExpression: ({ test, consequent, alternate }) => {
      if (test.type !== 'BinaryExpression' || !/^[<>]=?$/.test(test.operator)) return;
      const [operands, results] = [
        [text(test.left), text(test.right)].sort(),
        [text(consequent), text(alternate)].sort(),
      ];
      const selectsOne = operands.join('\n') === results.join('\n');
      const orders = results.join() === '-1,1';
      if (selectsOne || orders) spans.push(test);
    },
  }).visit(parseSync(file, source, { lang: 'ts' }).program);
  return spans;
}

/** Whether a fault leaves the behavior of a source text as it is. */
export function isEquivalent(source: string, mutant: Mutant): boolean {
  const { file, kind, start, end, replacement } = mutant;
  const isShifted = kind === 'operator' && /^[<>]=?$/.test(replacement) && replacement[0] === source[start];
  const isIndifferent = (part: Span): boolean => part.start <= start && end <= part.end;
  if (isShifted && indifferentComparisons(file, source).some(isIndifferent)) return true;
  const before = minified(file, source);
  return before !== null && before === minified(file, applyMutant(source, mutant));
}
