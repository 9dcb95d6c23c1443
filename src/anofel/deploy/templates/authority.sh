[ -e root.pem ] || {
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 3650 -subj "/CN=$AUTHORITY" \
    -addext keyUsage=critical,keyCertSign,cRLSign -keyout authority.key -out .root.pem && mv .root.pem root.pem
}
# What a request asks for beyond its name and key is not copied: it could ask to be an authority.
sign() {
  asked=$(openssl req -in "in/$1.request" -noout -verify -subject -nameopt RFC2253,-esc_msb,utf8 2>/dev/null)
  [ "$asked" = "subject=CN=$2,O=$2" ] || { echo "in/$1.request asks for '$asked', not for '$2'." >&2; exit 1; }
  printf 'basicConstraints=critical,CA:FALSE\nkeyUsage=critical,digitalSignature\nextendedKeyUsage=%s\n' "$3" > .ext
  printf 'subjectKeyIdentifier=hash\nauthorityKeyIdentifier=keyid\n' >> .ext
  openssl x509 -req -in "in/$1.request" -CA root.pem -CAkey authority.key -days 365 -extfile .ext \
    -out ".$1.pem" && mv ".$1.pem" "$1.pem"
}
answer() { machine="$1"; shift; tar cf "out/.$machine" root.pem "$@" && mv "out/.$machine" "out/$machine.answer"; }
