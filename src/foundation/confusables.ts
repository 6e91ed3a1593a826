/**
 * Characters that look like others, for labels: the letters and digits of confusables.txt of Unicode Technical Standard
 * #39 (version 13.0.0, Unicode License) whose look-alike is a Latin letter or a digit, or that are look-alikes among Latin,
 * Greek and Cyrillic. Compatibility characters, such as full-width letters, are missing: NFKC replaces them.
 */

/** A text in lower case, and the characters that look like it. */
const LOOK_ALIKES: readonly (readonly [text: string, characters: string])[] = [
  ['o', '0०੦૦௦౦೦൦๐໐၀٥۵ᴏᴑꬽοσⲟоჿօסهھہەഠဝ𐓪𑣈𑣗𐐬߀০୦〇𑓐𑣠ΟⲞОՕⵔዐଠ𐓂ꓳ𑢵𐊒𐊫𐐄𐔖'],
  ['l', '1١۱𐌠𞣇IƖǀΙⲒІӀוןاߊⵏᛁꓲ𖼨𐊊𐌉ⳐᏞᒪꓡ𖼖𑢣𑢲𐐛𐔦'],
  ['2', 'ꝚƧϨꙄᒿꛯ'],
  ['3', 'ꞫȜƷꝪⳌЗӠ𖼻𑣊'],
  ['4', 'Ꮞ𑢯'],
  ['5', 'Ƽ𑢻'],
  ['6', 'ⳒбᏮ𑣕'],
  ['7', '𐓒𑣆'],
  ['8', '৪੪𞣋ȣȢ𐌚'],
  ['9', '੧୨৭൭ꝮⳊ𑣌𑢬𑣖'],
  ['a', 'ɑαаΑАᎪᗅꓮ𖽀𐊠'],
  ['ă', 'ǎǍ'],
  ['å', 'ȧȦ'],
  ['aa', 'ꜳꜲ'],
  ['ae', 'æӕÆӔ'],
  ['ao', 'ꜵꜴ'],
  ['au', 'ꜷꜶ'],
  ['av', 'ꜹꜻꜸꜺ'],
  ['ay', 'ꜽꜼ'],
  ['b', 'ƄЬᏏᑲᖯꞴΒВᏴᗷꓐ𐊂𐊡𐌁'],
  ['bl', 'Ы'],
  ['ʙ', 'в'],
  ['c', 'ᴄⲥсꮯ𐐽𑣲𑣩ⲤСᏟꓚ𐊢𐌂𐐕𐔜'],
  ['ꞓ', 'ɛεєԑЄ'],
  ['ꜿ', 'ͽϿ'],
  ['d', 'ԁᏧᑯꓒᎠᗞᗪꓓ'],
  ['dz', 'ʣ'],
  ['ẟ', 'δ'],
  ['e', 'ꬲеҽΕЕⴹᎬꓰ𑢦𑢮𐊆'],
  ['ĕ', 'ěĚ'],
  ['ę', 'ҿ'],
  ['ǝ', 'əә'],
  ['ə', 'Ә'],
  ['ɛ', 'Ԑ'],
  ['ɜ', 'ᴈз'],
  ['ʚ', 'ꞝ'],
  ['f', 'ꬵꞙẝքꞘϜᖴꓝ𑣂𑢢𐊇𐊥𐔥'],
  ['g', 'ɡᶃƍցԌᏀᏳꓖ'],
  ['ğ', 'ǧǦ'],
  ['ģ', 'ǵ'],
  ['ɢ', 'ԍ'],
  ['h', 'һհᏂΗⲎНᎻᕼꓧ𐋏'],
  ['ʜ', 'н'],
  ['ƕ', 'Ԋ'],
  ['ⱶ', 'Ͱ'],
  ['ꜧ', 'ꞕ'],
  ['i', 'ıɪɩιіꙇӏꭵᎥ𑣃'],
  ['ĭ', 'ǐǏ'],
  ['j', 'ϳјꞲͿЈᎫᒍꓙ'],
  ['k', 'ΚⲔКᏦᛕꓗ𐔘'],
  ['ll', 'ǁװ'],
  ['lo', 'Ю'],
  ['ls', 'ʪ'],
  ['lz', 'ʫ'],
  ['m', 'ΜϺⲘМᎷᗰᛖꓟ𐊰𐌑'],
  ['n', 'ոռΝⲚꓠ𐔓'],
  ['ᴎ', 'ͷи'],
  ['ɲ', 'ņ'],
  ['ŏ', 'ǒǑ'],
  ['ö', 'Ő'],
  ['oe', 'œŒ'],
  ['oo', 'ꝏꚙꝎꚘ'],
  ['ɔ', 'ↄᴐͻↃϽ'],
  ['p', 'ρⲣрΡⲢРᏢᑭꓑ𐊕'],
  ['ᴘ', 'ᴩ'],
  ['ɸ', 'φф'],
  ['q', 'ԛգզⵕ'],
  ['ɋ', 'ᶐ'],
  ['ĸ', 'ᴋκк'],
  ['r', 'ꭇꭈᴦⲅгꮁƦᎡᏒ𐒴ᖇꓣ𖼵'],
  ['rn', '𑣣m𑜀'],
  ['ᴙ', 'я'],
  ['s', 'ꜱƽѕꮪ𑣁𐑈ЅՏᏕᏚꓢ𖼺𐊖𐐠'],
  ['ß', 'ꞵβ'],
  ['ʃ', 'ꭍΣ'],
  ['t', 'ΤⲦТᎢꓔ𖼊𑢼𐊗𐊱𐌕'],
  ['ţ', 'Ț'],
  ['t3', 'Ꜩ'],
  ['tf', 'ꝷ'],
  ['ts', 'ʦ'],
  ['ᴛ', 'τт'],
  ['ƫ', 'ţț'],
  ['u', 'ꞟᴜꭎꭒʋυս𐓶𑣘Սሀ𐓎ᑌꓴ𖽂𑢸'],
  ['ŭ', 'ǔǓ'],
  ['ue', 'ᵫ'],
  ['uo', 'ꭣ'],
  ['ꭑ', 'ṃ'],
  ['v', 'ᴠνѵט𑜆ꮩ𑣀٧۷ѴⴸᏙᐯꛟꓦ𖼈𑢠𐔝'],
  ['ʌ', 'ᴧΛЛ'],
  ['w', 'ɯᴡѡԝա𑜊𑜎𑜏ꮃ𑣯𑣦ԜᎳᏔꓪ'],
  ['ʍ', 'ᴍм'],
  ['x', 'хᕁᕽ𐌢𑣬ꞳΧⲬХⵝᚷꓫ𐊐𐊴𐌗𐔧'],
  ['y', 'ɣᶌʏỿꭚγуүყ𑣜ΥⲨУҮᎩᎽꓬ𖽃𑢤𐊲'],
  ['ȝ', 'ʒꝫӡ'],
  ['z', 'ᴢꮓ𑣄𐋵𑣥ΖᏃꓜ𑢩'],
  ['þ', 'ƿϸϷ'],
  ['ƨ', 'ᴤꙅ'],
  ['ƅ', 'ь'],
  ['ʘ', 'Ꙩ'],
  ['γ', 'Г'],
  ['π', 'ᴨпП'],
  ['ς', 'ϛ'],
  ['φ', 'Ф'],
  ['χ', 'ꭓꭕ'],
  ['ψ', 'ѱѰ'],
  ['ω', 'ꞷꙍ'],
  ['и', 'Ͷ'],
  ['ѝ', 'Й'],
  ['й', 'ѝ'],
  ['л', 'ᴫ'],
  ['љ', 'ꭠ'],
  ['ꙍ', 'Ꞷ'],
  ['ҷ', 'ӌӋ'],
  // Punctuation.
  ['-', '\u2010\u2011\u2012\u2013\u2014\u2015\u2212\u02d7\ufe58\u2796\u06d4'],
  ["'", '\u2018\u2019\u201b\u2032\u2035\u02b9\u02bb\u02bc\u02bd\u02be\u02c8\u02ca\u02cb\u055a\u05f3\u0060\u00b4'],
  ['.', '\u0660\u06f0\u0701\u0702\ua4f8\ua60e'],
];

const TEXT_OF: ReadonlyMap<string, string> = new Map(
  LOOK_ALIKES.flatMap(([text, characters]) => Array.from(characters, (one) => [one, text] as const)),
);

/** Invisible characters. The blank Braille pattern looks like a space. */
const INVISIBLE = /[\p{Default_Ignorable_Code_Point}\p{Cc}\p{Cf}\p{Cn}\p{Co}\p{Cs}]/gu;
const BLANKS = /[\s\u2800]+/gu;

function replacedOnce(text: string): string {
  return Array.from(text, (one) => TEXT_OF.get(one) ?? one).join('');
}

/** Replaces characters with and without their accents: the table has only some of them with accents. */
function replaced(text: string): string {
  const bare = replacedOnce(replacedOnce(text).normalize('NFD'));
  return replacedOnce(bare.normalize('NFC')).replaceAll('m', 'rn');
}

/**
 * Forms under which a text looks the same to a reader. Two texts that share one are easily taken for each other. There are
 * two, because capital letters look like other letters than small ones: "I" like "l", and "i" like "ı".
 */
export function skeletons(text: string): readonly string[] {
  const plain = text.normalize('NFKC').replaceAll(INVISIBLE, '').replaceAll(BLANKS, ' ').trim().normalize('NFKC');
  const asWritten = replaced(replaced(plain).toLowerCase());
  const small = replaced(plain.toLowerCase());
  return asWritten === small ? [small] : [small, asWritten];
}
