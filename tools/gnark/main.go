// Times gnark for bench/proofs.py: one command per line in, a JSON array of strings, and one line
// of JSON out.
//
//	["prove", r1cs, wtns]   a proof, with the values of all variables in memory
//	["verify", r1cs, wtns]  a proof's check
//
// The constraints are ours, row by row, as the file says; the key is gnark's own. The answer is
// the seconds it took: [on the clock, of all cores]; for a check, the mean of some in a row. What is
// timed is what a program calls that has made its key before: groth16.Prove, which also checks the
// constraints, and groth16.Verify.
package main

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/big"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/consensys/gnark-crypto/ecc"
	"github.com/consensys/gnark/backend/groth16"
	"github.com/consensys/gnark/backend/witness"
	"github.com/consensys/gnark/constraint"
	bn254 "github.com/consensys/gnark/constraint/bn254"
	"github.com/consensys/gnark/logger"
)

// Checks in a row, as bench_proofs has them.
const checks = 200

func must[T any](value T, err error) T {
	insist(err)
	return value
}

func insist(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// A file of iden3: where its sections are.
func sections(path string) map[uint32][]byte {
	data := must(os.ReadFile(path))
	found := map[uint32][]byte{}
	for rest := data[12:]; len(rest) > 0; {
		length := binary.LittleEndian.Uint64(rest[4:])
		found[binary.LittleEndian.Uint32(rest)] = rest[12 : 12+length]
		rest = rest[12+length:]
	}
	return found
}

func number(data []byte) *big.Int {
	reversed := slices.Clone(data)
	slices.Reverse(reversed)
	return new(big.Int).SetBytes(reversed)
}

// The constraints of a `.r1cs` file as gnark's: variable 0 is one, then public, then private ones.
func constraints(path string) *bn254.R1CS {
	file := sections(path)
	header := file[1][4+32:]
	word := func(i int) int { return int(binary.LittleEndian.Uint32(header[4*i:])) }
	variables, public, rows := word(0), word(1)+word(2), word(6)
	system := bn254.NewR1CS(rows)
	blueprint := system.AddBlueprint(&constraint.BlueprintGenericR1C{})
	for i := range variables {
		if i <= public {
			system.AddPublicVariable(fmt.Sprint(i))
		} else {
			system.AddSecretVariable(fmt.Sprint(i))
		}
	}
	rest := file[2]
	side := func() (row constraint.LinearExpression) {
		count := int(binary.LittleEndian.Uint32(rest))
		rest = rest[4:]
		for range count {
			coefficient := system.FromInterface(number(rest[4:36]))
			row = append(row, system.MakeTerm(coefficient, int(binary.LittleEndian.Uint32(rest))))
			rest = rest[36:]
		}
		return row
	}
	for range rows {
		l, r, o := side(), side(), side()
		system.AddR1C(constraint.R1C{L: l, R: r, O: o}, blueprint)
	}
	return system
}

type subject struct {
	system constraint.ConstraintSystem
	key    groth16.ProvingKey
	vk     groth16.VerifyingKey
}

var subjects = map[string]subject{}

func prepared(path string) subject {
	if _, known := subjects[path]; !known {
		system := constraints(path)
		key, vk, err := groth16.Setup(system)
		insist(err)
		subjects[path] = subject{system, key, vk}
	}
	return subjects[path]
}

func values(path string, public int) witness.Witness {
	data := sections(path)[2]
	made := must(witness.New(ecc.BN254.ScalarField()))
	filled := make(chan any)
	go func() {
		for at := 32; at < len(data); at += 32 {
			filled <- number(data[at : at+32])
		}
		close(filled)
	}()
	insist(made.Fill(public-1, len(data)/32-public, filled))
	return made
}

func cpuSeconds() float64 {
	var used syscall.Rusage
	insist(syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	seconds := func(t syscall.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)/1e6 }
	return seconds(used.Utime) + seconds(used.Stime)
}

func timed(work func()) []float64 {
	cpu, start := cpuSeconds(), time.Now()
	work()
	return []float64{time.Since(start).Seconds(), cpuSeconds() - cpu}
}

func main() {
	logger.Disable()
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var words []string
		insist(json.Unmarshal(lines.Bytes(), &words))
		made := prepared(words[1])
		whole := values(words[2], made.system.GetNbPublicVariables())
		public := must(whole.Public())
		var proof groth16.Proof
		prove := func() { proof = must(groth16.Prove(made.system, made.key, whole)) }
		verify := func() { insist(groth16.Verify(proof, made.vk, public)) }
		taken := timed(prove)
		if words[0] == "verify" {
			taken = timed(func() {
				for range checks {
					verify()
				}
			})
			taken[0] /= checks
			taken[1] /= checks
		}
		fmt.Println(string(must(json.Marshal(taken))))
	}
}
